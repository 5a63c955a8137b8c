"""Fixtures of the command-line tests: one cache per module, and runs of the small recipes."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_recipes import train_recipe, write_recipes


@pytest.fixture(scope="module", autouse=True)
def isolated_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache for the tests of a module, so that they prepare the data of a recipe once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipes(tmp_path_factory.mktemp("recipes"))


@pytest.fixture(scope="session")
def trained_recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for runs that are trained once per session. Each module gets a copy."""
    return write_recipes(tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="session")
def trained_reverse(trained_recipes: Path) -> Path:
    return train_recipe(trained_recipes, "reverse")


@pytest.fixture(scope="session")
def trained_sentences(trained_recipes: Path) -> Path:
    return train_recipe(trained_recipes, "sentences")


@pytest.fixture(scope="session")
def trained_worse(trained_recipes: Path) -> Path:
    settings = ("training.steps=5", "model.decoder.attention.kind=none")
    return train_recipe(trained_recipes, "reverse", *settings, run_name="worse")


@pytest.fixture(scope="module")
def reverse(recipes: Path, trained_reverse: Path) -> Path:
    """A translator that reverses strings, with errors."""
    return shutil.copytree(trained_reverse, recipes / "runs" / "reverse")


@pytest.fixture(scope="module")
def sentences(recipes: Path, trained_sentences: Path) -> Path:
    """A language model."""
    return shutil.copytree(trained_sentences, recipes / "runs" / "sentences")


@pytest.fixture(scope="module")
def worse(recipes: Path, trained_worse: Path) -> Path:
    """A translator that is trained less than `reverse` and has no attention."""
    return shutil.copytree(trained_worse, recipes / "runs" / "worse")
