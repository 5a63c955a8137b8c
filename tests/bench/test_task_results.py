"""The registry of measured tasks, their runs and the page of results."""

import argparse
import json
from pathlib import Path
from typing import Any, get_args

import pytest

from bench import recipes
from bench.recipes import expected_line, main_score, measured_line, remove_paths
from bench.tasks.__main__ import list_runs, missing_data
from bench.tasks.page import format_score, page
from bench.tasks.registry import TASKS, data_folder, recipe_of, result_name
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.names import ScoreName

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def build_result(recipe: str, **scores: float) -> dict[str, Any]:
    return {
        "recipe": recipe,
        "report": {
            "scores": [
                {
                    "name": name.replace("_", " "),
                    "value": value,
                    "signature": "test signature" if name == "accuracy" else None,
                    "higher_is_better": not name.endswith("rate"),
                }
                for name, value in scores.items()
            ]
        },
        "seconds": 60.4,
        "steps": 2000,
        "parameters": 1_234_567,
        "machine": "NVIDIA H200",
        "torch": "2.11",
        "python": "3.11",
        "seed": 1,
        "at_once": 1,
    }


def write_result(folder: Path, name: str, result: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")


@pytest.mark.parametrize("name", TASKS)
def test_the_recipe_of_a_task_computes_one_of_its_scores(name: str) -> None:
    config = load_recipe(recipe_of(name)).config
    computed = set(getattr(config.task, "scores", ()))
    shown = {score for score in TASKS[name].scores if score in get_args(ScoreName)}
    assert not computed or shown & computed


def test_a_row_has_our_scores_and_the_published_ones(tmp_path: Path) -> None:
    assert page(tmp_path) is None
    write_result(
        tmp_path, "cmudict-g2p", build_result("cmudict-g2p", word_error_rate=29.34, TER=3.0)
    )
    write_result(tmp_path, "language-id", build_result("language-id", accuracy=99.2, macro_F1=99.1))
    text = page(tmp_path)
    assert text is not None
    rows = [row for row in text.splitlines() if row.startswith("| ") and "`" in row]
    assert len(rows) == 2
    assert "| **29.3** | 31; – | 1.2 M | 2,000 | 1 | 60 s, NVIDIA H200 |" in text
    assert "accuracy; macro f1 | **99.2; 99.1** |" in text
    assert "- `language-id` accuracy: test signature" in text


def test_a_task_of_several_runs_is_shown_as_their_mean_when_all_are_measured(
    tmp_path: Path,
) -> None:
    runs = TASKS["eth-ucy"].runs
    assert len(runs) == 5
    for number, run in enumerate(runs):
        assert page(tmp_path) is None
        result = build_result("eth-ucy", ADE=0.5 + number / 10, FDE=1)
        write_result(tmp_path, result_name("eth-ucy", run), result)
    text = page(tmp_path)
    assert text is not None
    assert "ade; fde | **0.7; 1** |" in text
    assert "| 302 s, NVIDIA H200 |" in text


def test_missing_data_is_reported_with_the_reason(tmp_path: Path) -> None:
    task = TASKS["cmudict-g2p"]
    assert missing_data(task, None) == "it requires --data FOLDER"
    assert "there is no folder" in str(missing_data(task, tmp_path))
    (tmp_path / "cmudict").mkdir()
    assert missing_data(task, tmp_path) is None
    assert missing_data(TASKS["language-id"], None) is None


def test_a_run_passes_its_settings_and_is_skipped_if_its_result_exists(tmp_path: Path) -> None:
    options = argparse.Namespace(data=tmp_path, out=tmp_path, jobs=1, settings=["x=1"])
    (run,) = list_runs("cmudict-g2p", options)
    assert f"--set=data.folder={tmp_path / 'cmudict'}" in run.command()
    assert "--set=x=1" in run.command()
    write_result(tmp_path, "cmudict-g2p", {})
    assert run.start() == 0


def test_the_data_folder_of_a_recipe_is_found_by_the_prefix_of_its_name() -> None:
    assert data_folder("multi30k-de-en-fast") == "multi30k"
    assert data_folder("cmudict-g2p") == "cmudict"
    assert data_folder("language-id") is data_folder("demo") is None


def test_recipe_headers_have_percentages_and_the_direction_of_the_score() -> None:
    errors = build_result("cmudict-g2p", phoneme_error_rate=6.0, word_error_rate=30.0)
    assert main_score(errors)["name"] == "word error rate"
    assert expected_line(errors) == "word error rate 30.6 % or less"
    assert measured_line(errors).startswith("word error rate 30.0 % on the test split, ")
    accurate = build_result("language-id", accuracy=99.2)
    assert expected_line(accurate) == "accuracy 98.8 % or more"
    assert [format_score(value) for value in (99.26, 1.4712, 0.0981)] == ["99.3", "1.47", "0.0981"]


def test_the_expected_score_is_that_of_the_worst_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes, "SEEDS", tmp_path)
    for seed, accuracy in ((1, 99.2), (2, 97.5), (3, 98.0)):
        result = build_result("language-id", accuracy=accuracy)
        write_result(tmp_path, f"language-id.unchanged.seed{seed}", result)
    assert expected_line(build_result("language-id", accuracy=99.2)) == "accuracy 97.1 % or more"


def test_stored_results_contain_no_local_paths() -> None:
    result = {
        "overrides": ["data.folder=/home/me/data/ett", "task.predict=48"],
        "curve": [{"event": "start", "step": 0, "folder": "/home/me/run"}],
        "report": {"data": {"folder": "/home/me/data/ett", "test": []}, "scores": []},
    }
    stored = remove_paths(result)
    assert "/home" not in json.dumps(stored)
    assert stored["overrides"] == ["data.folder=ett", "task.predict=48"]
    assert stored["report"]["data"] == {"folder": "ett", "test": []}


def test_the_page_of_tasks_equals_the_rendered_results() -> None:
    assert (RESULTS / "tasks.md").read_text(encoding="utf-8") == page(RESULTS / "recipes")
