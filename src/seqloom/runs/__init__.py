"""A trained thing on disk, and using it."""
