"""The recipes that come inside the package."""

from importlib.resources import files
from importlib.resources.abc import Traversable


def bundled_recipes() -> dict[str, Traversable]:
    """Every bundled recipe, by the name it is asked for."""
    folder = files("seqloom").joinpath("recipes")
    if not folder.is_dir():
        return {}
    recipes = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    return {file.name.removesuffix(".toml"): file for file in recipes}
