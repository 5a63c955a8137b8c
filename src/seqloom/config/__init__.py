"""Recipes: `schema` describes their sections, `loading` reads and checks them.

This package never imports torch or data files, so that errors in a recipe are reported at once.
Keep this file and those of the sub-packages free of imports: the command line's help imports
`schema.names` and `loading.bundled`, and must not wait for pydantic.
"""
