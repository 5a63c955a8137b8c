"""The recipes and presets that come with the package.

This module must not import slow modules, because the help of several commands lists the recipes.
"""

from importlib.resources import files
from importlib.resources.abc import Traversable


def bundled_recipes() -> dict[str, Traversable]:
    """Return a dictionary that maps the name of each bundled recipe to its file."""
    return _toml_files(files("seqloom").joinpath("recipes"))


def bundled_presets() -> dict[str, Traversable]:
    """Return a dictionary that maps the name of each preset to its file."""
    return _toml_files(files("seqloom").joinpath("recipes", "presets"))


def _toml_files(folder: Traversable) -> dict[str, Traversable]:
    if not folder.is_dir():
        return {}
    toml_files = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    return {file.name.removesuffix(".toml"): file for file in toml_files}
