"""The headers of the bundled recipes, the README and the stored results agree."""

import re
import statistics
from pathlib import Path

import pytest

from bench import store
from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_bundled_recipe
from seqloom.config.schema.training import TrainingConfig

ROOT = Path(__file__).parents[2]
RECIPES = store.read("recipes")
SEEDS = store.read("seeds")
every_recipe = pytest.mark.parametrize("name", sorted(bundled_recipes()))


@every_recipe
def test_a_recipe_states_its_expected_and_measured_scores(name: str) -> None:
    text = bundled_recipes()[name].read_text(encoding="utf-8")
    assert re.search(r"^# Should reach: \S.* or (more|less)\.$", text, flags=re.M)
    measured = re.search(r"^# Measured: .* ([\d]+) steps, seed (\d+), ", text, flags=re.M)
    assert measured is not None
    training = load_bundled_recipe(name).config.training
    assert is_complete(int(measured[1]), training)
    seed = int(measured[2])
    assert seed == training.seed or any(
        each["seed"] == seed for each in store.select(SEEDS, name, "unchanged")
    )


def is_complete(steps: int, training: TrainingConfig) -> bool:
    """True if a training of this recipe can end after this number of steps."""
    if training.stopping.patience is None:
        return steps == training.steps
    return steps <= training.steps and steps % training.evaluate_every == 0


@every_recipe
def test_a_recipe_has_a_stored_result_and_a_row_on_the_page(name: str) -> None:
    (result,) = store.select(RECIPES, name, "unchanged")
    assert is_complete(result["steps"], load_bundled_recipe(name).config.training)
    assert {"machine", "torch", "seed", "parameters", "scores", "signatures"} <= set(result)
    page = (ROOT / "docs" / "results" / "recipes.md").read_text(encoding="utf-8")
    assert f"| `{name}` |" in page


def test_the_scores_in_the_readme_are_the_measured_ones() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = {"German→English": "tatoeba-de-en", "English→French": "tatoeba-en-fr", "case": "case"}
    for label, family in rows.items():
        row = re.search(rf"^\| [^|]*{label}[^|]*\|(.*)\|$", readme, flags=re.M)
        assert row is not None
        cells = [cell.strip(" %") for cell in row[1].split("|")]
        for cell, kind in zip(cells, ("plain", "attention", "transformer"), strict=True):
            results = store.select(RECIPES, f"{family}-{kind}", "unchanged")
            name = "exact match" if family == "case" else "BLEU"
            if cell == "–":
                assert not results
            elif "±" in cell:
                assert cell == mean_and_deviation(f"{family}-{kind}", name)
            else:
                assert cell == f"{results[0]['scores'][name]:.1f}"
    fast = mean_and_deviation("multi30k-de-en-fast", "BLEU")
    assert f"`multi30k-de-en-fast` reaches {fast} BLEU" in readme


def mean_and_deviation(recipe: str, name: str) -> str:
    """Mean ± standard deviation of the results of the study `seeds`."""
    values = [each["scores"][name] for each in store.select(SEEDS, recipe, "unchanged")]
    assert len(values) >= 3
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"
