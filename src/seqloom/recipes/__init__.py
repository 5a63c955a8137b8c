"""Bundled recipes, which `seqloom train NAME` and `seqloom.load_recipe(NAME)` find by name."""
