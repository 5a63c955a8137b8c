"""Recipes: `schema` describes their sections, `loading` reads and checks them.

This package never imports torch and never reads data files, so that errors in a recipe are reported
at once. Keep this file and the `__init__.py` of each sub-package free of imports: the help of the
command line imports `schema.names` and `loading.bundled`, and must not load pydantic, which is slow.
"""
