"""Fixtures of the command-line tests: one cache per module, and runs of the small recipes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_recipes import train_recipe, write_recipes

from cli_runner import run_cli


@pytest.fixture(scope="module", autouse=True)
def isolated_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache for the tests of a module, so that they prepare the data of a recipe once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipes(tmp_path_factory.mktemp("recipes"))


@pytest.fixture(scope="module")
def reverse(recipes: Path) -> Path:
    """A translator that reverses strings, with errors."""
    return train_recipe(recipes, "reverse")


@pytest.fixture(scope="module")
def sentences(recipes: Path) -> Path:
    """A language model."""
    return train_recipe(recipes, "sentences")


@pytest.fixture(scope="module")
def worse(recipes: Path) -> Path:
    """A translator that is trained less than `reverse` and has no attention."""
    folder = recipes / "runs" / "worse"
    settings = ("--set", "training.steps=5", "--set", "model.decoder.attention.kind=none")
    assert run_cli("train", recipes / "reverse.toml", "--run", folder, *settings).exit_code == 0
    return folder
