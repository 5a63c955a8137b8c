"""The recipes and presets that come inside the package. Nothing heavy: every help text asks."""

from importlib.resources import files
from importlib.resources.abc import Traversable


def bundled_recipes() -> dict[str, Traversable]:
    """Every bundled recipe, by the name it is asked for."""
    folder = files("seqloom").joinpath("recipes")
    if not folder.is_dir():
        return {}
    recipes = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    return {file.name.removesuffix(".toml"): file for file in recipes}


def bundled_presets() -> dict[str, Traversable]:
    """Every preset, by its name."""
    folder = files("seqloom").joinpath("recipes", "presets")
    presets = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    return {file.name.removesuffix(".toml"): file for file in presets}
