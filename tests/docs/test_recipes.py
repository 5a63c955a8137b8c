"""The headers of the bundled recipes, the README and the stored results agree."""

import json
import re
import statistics
from pathlib import Path

import pytest

from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_bundled_recipe
from seqloom.config.schema.training import TrainingConfig

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "recipes"
SEEDS = RESULTS.parent / "seeds"
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
    assert seed == training.seed or (SEEDS / f"{name}.unchanged.seed{seed}.json").exists()


def is_complete(steps: int, training: TrainingConfig) -> bool:
    """True if a training of this recipe can end after this number of steps."""
    if training.stopping.patience is None:
        return steps == training.steps
    return steps <= training.steps and steps % training.evaluate_every == 0


@every_recipe
def test_a_recipe_has_a_stored_result_and_a_row_on_the_page(name: str) -> None:
    result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert is_complete(result["steps"], load_bundled_recipe(name).config.training)
    assert {"machine", "torch", "seed", "parameters", "curve", "report"} <= set(result)
    page = (RESULTS.parent / "recipes.md").read_text(encoding="utf-8")
    assert f"| `{name}` |" in page


def test_the_scores_in_the_readme_are_the_measured_ones() -> None:
    readme = (RESULTS.parents[2] / "README.md").read_text(encoding="utf-8")
    rows = {"German→English": "tatoeba-de-en", "English→French": "tatoeba-en-fr", "case": "case"}
    for label, family in rows.items():
        row = re.search(rf"^\| [^|]*{label}[^|]*\|(.*)\|$", readme, flags=re.M)
        assert row is not None
        cells = [cell.strip(" %") for cell in row[1].split("|")]
        for cell, kind in zip(cells, ("plain", "attention", "transformer"), strict=True):
            path = RESULTS / f"{family}-{kind}.json"
            name = "exact match" if family == "case" else "BLEU"
            if cell == "–":
                assert not path.exists()
            elif "±" in cell:
                assert cell == mean_and_deviation(f"{family}-{kind}", name)
            else:
                assert cell == f"{measured_score(path, name):.1f}"
    fast = mean_and_deviation("multi30k-de-en-fast", "BLEU")
    assert f"`multi30k-de-en-fast` reaches {fast} BLEU" in readme


def measured_score(path: Path, name: str) -> float:
    report = json.loads(path.read_text(encoding="utf-8"))["report"]
    [value] = [score["value"] for score in report["scores"] if score["name"] == name]
    return float(value)


def mean_and_deviation(recipe: str, name: str) -> str:
    """Mean ± standard deviation of the results of `bench.seeds`."""
    paths = sorted((RESULTS.parent / "seeds").glob(f"{recipe}.unchanged.seed*.json"))
    assert len(paths) >= 3
    values = [measured_score(path, name) for path in paths]
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"
