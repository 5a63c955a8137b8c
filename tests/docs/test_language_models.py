"""The recipe and the recipe names in docs/tasks/language-models.md are valid."""

import re
import tomllib
from pathlib import Path

from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_recipe
from seqloom.data.corpus.long_text import WindowShape, window_shape

PAGE = Path(__file__).parents[2] / "docs" / "tasks" / "language-models.md"


def test_the_recipe_on_the_page_is_valid() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    config = load_recipe(tomllib.loads(block)).config
    assert window_shape(config.data, "train") == WindowShape(256, 0)
    assert window_shape(config.data, "dev") == WindowShape(256, 128)


def test_the_recipes_named_on_the_page_exist() -> None:
    named = re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE.read_text(encoding="utf-8"), flags=re.M)
    recipes = {name for name in named if name.partition("-")[2]}
    assert len(recipes) == 5
    assert recipes <= set(bundled_recipes())
