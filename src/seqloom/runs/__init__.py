"""A run on disk: its folder, integrity, archive, recipe and description."""
