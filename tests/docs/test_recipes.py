"""Every bundled recipe can be read, and its header tells of the recipe that stands below it."""

import json
import re
from pathlib import Path

import pytest

from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_bundled_recipe

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "recipes"
every_recipe = pytest.mark.parametrize("name", sorted(bundled_recipes()))


@every_recipe
def test_a_recipe_says_what_it_should_reach_and_what_was_measured(name: str) -> None:
    text = bundled_recipes()[name].read_text(encoding="utf-8")
    assert re.search(r"^# Should reach: \S.* or (more|less)\.$", text, flags=re.M)
    measured = re.search(r"^# Measured: .* ([\d]+) steps, seed (\d+), ", text, flags=re.M)
    assert measured is not None
    training = load_bundled_recipe(name).config.training
    assert (int(measured[1]), int(measured[2])) == (training.steps, training.seed)


@every_recipe
def test_a_measurement_lies_beside_the_docs_with_all_that_made_it(name: str) -> None:
    result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert result["steps"] == load_bundled_recipe(name).config.training.steps
    assert {"machine", "torch", "seed", "parameters", "curve", "report"} <= set(result)
    page = (RESULTS.parent / "recipes.md").read_text(encoding="utf-8")
    assert f"| `{name}` |" in page


def test_the_figures_of_the_readme_are_those_that_were_measured() -> None:
    readme = (RESULTS.parents[2] / "README.md").read_text(encoding="utf-8")
    rows = {"German→English": "tatoeba-de-en", "English→French": "tatoeba-en-fr", "case": "case"}
    for label, family in rows.items():
        row = re.search(rf"^\| [^|]*{label}[^|]*\|(.*)\|$", readme, flags=re.M)
        assert row is not None
        shown = [cell.strip(" %") for cell in row[1].split("|")]
        for cell, kind in zip(shown, ("plain", "attention", "transformer"), strict=True):
            path = RESULTS / f"{family}-{kind}.json"
            if cell == "–":
                assert not path.exists()
                continue
            report = json.loads(path.read_text(encoding="utf-8"))["report"]
            values = {score["name"]: score["value"] for score in report["scores"]}
            measured = values["exact match" if family == "case" else "BLEU"]
            assert cell == f"{measured:.1f}"
