"""The table of tasks is made of what was measured, and every task in it can be measured."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench.pronunciation import table as pronunciation  # noqa: E402
from bench.pronunciation.languages import LANGUAGES, file_name, write_tagged  # noqa: E402
from bench.pronunciation.measure import ALL, Job, config_of, measure  # noqa: E402
from bench.recipes import goal, headline, line, without_places  # noqa: E402
from bench.tasks.__main__ import jobs_of, obstacle  # noqa: E402
from bench.tasks.page import page, shown  # noqa: E402
from bench.tasks.table import TASKS, folder_of, label_of, recipe_of  # noqa: E402
from seqloom.config.loading.loader import load_recipe  # noqa: E402
from seqloom.config.schema.names import ScoreName  # noqa: E402


def result(recipe: str, **scores: float) -> dict[str, Any]:
    listed = [
        {
            "name": name.replace("_", " "),
            "value": value,
            "signature": "exactly so" if name == "accuracy" else None,
            "higher_is_better": not name.endswith("rate"),
        }
        for name, value in scores.items()
    ]
    about = {"machine": "NVIDIA H200", "torch": "2.11", "python": "3.11", "seed": 1, "at_once": 1}
    return {"recipe": recipe, "report": {"scores": listed}, "seconds": 60.4, "steps": 2000,
            "parameters": 1_234_567, **about}  # fmt: skip


def write(folder: Path, label: str, record: dict[str, Any]) -> None:
    (folder / f"{label}.json").write_text(json.dumps(record), encoding="utf-8")


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_judged_by_scores_that_its_recipe_computes(name: str) -> None:
    config = load_recipe(recipe_of(name)).config
    known = set(getattr(config.task, "scores", ()))
    judged = {score for score in TASKS[name].scores if score in get_args(ScoreName)}
    assert not known or judged & known


def test_a_row_has_our_figures_beside_those_of_others(tmp_path: Path) -> None:
    assert page(tmp_path) is None
    write(tmp_path, "cmudict-g2p", result("cmudict-g2p", word_error_rate=29.34, TER=3.0))
    write(tmp_path, "language-id", result("language-id", accuracy=99.2, macro_F1=99.1))
    text = page(tmp_path)
    assert text is not None
    rows = [row for row in text.splitlines() if row.startswith("| ") and "`" in row]
    assert len(rows) == 2
    assert "| **29.3** | 31; – | 1.2 M | 2,000 | 1 | 60 s, NVIDIA H200 |" in text
    assert "accuracy; macro f1 | **99.2; 99.1** |" in text
    assert "- `language-id` accuracy: exactly so" in text


def test_a_task_of_several_runs_is_their_mean_once_all_are_there(tmp_path: Path) -> None:
    runs = TASKS["eth-ucy"].runs
    assert len(runs) == 5
    for number, run in enumerate(runs):
        assert page(tmp_path) is None
        write(tmp_path, label_of("eth-ucy", run), result("eth-ucy", ADE=0.5 + number / 10, FDE=1))
    text = page(tmp_path)
    assert text is not None
    assert "ade; fde | **0.7; 1** |" in text
    assert "| 302 s, NVIDIA H200 |" in text


def test_what_stands_in_the_way_of_a_task_is_said(tmp_path: Path) -> None:
    task = TASKS["cmudict-g2p"]
    assert obstacle(task, None) == "it needs --data FOLDER"
    assert "there is no folder" in str(obstacle(task, tmp_path))
    (tmp_path / "cmudict").mkdir()
    assert obstacle(task, tmp_path) is None
    assert obstacle(TASKS["language-id"], None) is None


def test_a_job_is_the_recipe_with_its_data_and_is_not_done_twice(tmp_path: Path) -> None:
    chosen: Any = type(
        "Chosen", (), {"data": tmp_path, "out": tmp_path, "jobs": 1, "settings": ["x=1"]}
    )
    (job,) = jobs_of("cmudict-g2p", chosen)
    assert f"--set=data.folder={tmp_path / 'cmudict'}" in job.command()
    assert "--set=x=1" in job.command()
    write(tmp_path, "cmudict-g2p", {})
    assert job.start() == 0  # at once: its result is there


def test_the_folder_of_a_recipe_is_known_by_how_its_name_begins() -> None:
    assert folder_of("multi30k-de-en-fast") == "multi30k"
    assert folder_of("cmudict-g2p") == "cmudict"
    assert folder_of("language-id") is folder_of("demo") is None


def test_headers_say_a_share_in_percent_and_what_is_better() -> None:
    errors = result("cmudict-g2p", phoneme_error_rate=6.0, word_error_rate=30.0)
    assert headline(errors)["name"] == "word error rate"
    assert goal(errors) == "word error rate 30.6 % or less"
    assert line(errors).startswith("word error rate 30.0 % on the test split, ")
    assert goal(result("language-id", accuracy=99.2)) == "accuracy 98.8 % or more"
    assert [shown(value) for value in (99.26, 1.4712, 0.0981)] == ["99.3", "1.47", "0.0981"]


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """A few words of each of the 15 languages, in the files of the task."""
    folder = tmp_path / "words"
    folder.mkdir()
    for language in LANGUAGES:
        for split, letters in (("train", "abcdefgh"), ("dev", "ab"), ("test", "ab")):
            lines = [f"{one}{other}\t{one} {other}\n" for one in letters for other in letters]
            with gzip.open(folder / file_name(language, split), "wt", encoding="utf-8") as file:
                file.write("".join(lines))
    return folder


SMALL = (
    *("model.encoder.width=8", "model.decoder.width=8", "training.steps=3"),
    *("training.evaluate_every=3", "training.schedule.warmup=1", "training.batch_tokens=256"),
    *("training.evaluate_examples=4", "decoding.kind=greedy", "decoding.max_length=4"),
)


def test_a_result_does_not_tell_where_things_lay() -> None:
    result = {
        "overrides": ["data.folder=/home/me/data/ett", "task.predict=48"],
        "curve": [{"event": "start", "step": 0, "folder": "/home/me/run"}],
        "report": {"data": {"folder": "/home/me/data/ett", "test": []}, "scores": []},
    }
    told = without_places(result)
    assert "/home" not in json.dumps(told)
    assert told["overrides"] == ["data.folder=ett", "task.predict=48"]
    assert told["report"]["data"] == {"folder": "ett", "test": []}


def test_languages_are_measured_alone_together_and_as_ensembles(
    words: Path, tmp_path: Path
) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    write_tagged(words, work / "tagged")
    for seed in (1, 2, None):
        measure(Job("ice", seed, out, work, words, SMALL))
    measure(Job(ALL, 1, out, work, work / "tagged", SMALL))
    text = pronunciation.page(out)
    assert text is not None
    heads, rows = "| a model each | ensembles of these | one model for all |", text.splitlines()
    assert heads in text
    (icelandic,) = [row for row in rows if row.startswith("| Icelandic ")]
    (greek,) = [row for row in rows if row.startswith("| Greek ")]
    assert icelandic.count(" / ") == 3
    assert greek.count("–") == 2
    assert "– (1 of 15) | – (1 of 15) | **" in text


def test_a_tag_before_a_word_says_its_language(words: Path, tmp_path: Path) -> None:
    write_tagged(words, tmp_path / "tagged")
    first = (tmp_path / "tagged" / "ice_test.tsv").read_text(encoding="utf-8").splitlines()[0]
    assert first == "<ice> aa\ta a"
    config = config_of(Job(ALL, 3, tmp_path, tmp_path, tmp_path / "tagged", ()))
    assert set(config.text.tags) == {f"<{language}>" for language in LANGUAGES}
    assert config.training.seed == 3


def test_the_pages_are_what_the_files_give() -> None:
    results = ROOT / "docs" / "results"
    for name, folder, made in (
        ("tasks.md", "recipes", page),
        ("pronunciation.md", "pronunciation", pronunciation.page),
    ):
        if (results / name).exists():
            assert (results / name).read_text(encoding="utf-8") == made(results / folder)
