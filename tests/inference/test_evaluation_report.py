"""Evaluation reports: scores, the scored outputs, and how they were computed."""

import json
from pathlib import Path

import pytest
import torch

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import DataError
from seqloom.core.storage import atomic_folder, find_damage
from seqloom.inference.evaluation.report import compare_reports
from seqloom.inference.run import load
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

PAIRS = "ab\tba\nabc\tcba\nab\tab\ncd\tdc\n"


def tsv_config(folder: Path, *settings: str) -> RunConfig:
    (folder / "pairs.tsv").write_text(PAIRS * 10)
    (folder / "test.tsv").write_text(PAIRS)
    files = {"train": "pairs", "dev": "test", "test": "test"}
    data = [f"data.{split}={{kind='tsv', path='{name}.tsv'}}" for split, name in files.items()]
    return tiny_config(*data, f"data.folder={folder}", "training.steps=8", *settings)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    train(tsv_config(folder), folder / "run")
    return folder / "run"


@pytest.mark.slow
def test_saved_report_is_complete_and_states_how_it_was_computed(run: Path) -> None:
    progress: list[tuple[int, int]] = []
    report = load(run).evaluate(
        "test", beam=2, progress=lambda done, total: progress.append((done, total))
    )
    assert report.sentences == len(report.outputs) == len(report.examples) == 4
    scores = {score.key: score for score in report.scores}
    assert scores["bleu"].signature is not None
    assert "tok:13a" in scores["bleu"].signature
    assert scores["perplexity"].value > 1
    assert sum(bucket.sentences for bucket in report.by_length) == 4
    assert progress[-1] == (4, 4)
    path = report.save(run)
    assert find_damage(path) == []
    saved = json.loads((path / "report.json").read_bytes())
    assert saved["decoding"] == {**report.decoding.model_dump(mode="json"), "width": 2}
    assert saved["versions"]["torch"] == torch.__version__
    assert (path / "outputs.txt").read_text().splitlines() == list(report.outputs)
    assert (path / "sources.txt").read_text().splitlines() == ["ab", "abc", "ab", "cd"]
    assert load(run).evaluate("test", beam=2).save(run) == path


@pytest.mark.slow
def test_references_of_one_source_are_merged_if_the_recipe_sets_it(tmp_path: Path) -> None:
    train(tsv_config(tmp_path, "data.merge_references=true"), tmp_path / "run")
    report = load(tmp_path / "run").evaluate("test")
    assert [example.source for example in report.examples] == ["ab", "abc", "cd"]
    assert report.examples[0].references == ("ba", "ab")
    path = report.save(tmp_path / "run")
    assert (path / "references.txt").read_text().splitlines()[0] == "ba\tab"


@pytest.mark.slow
def test_evaluation_accepts_data_in_another_folder(run: Path, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("ab\tba\n")
    data = load(run).config.data.model_copy(update={"folder": str(tmp_path)})
    report = load(run).evaluate("test", data=data)
    assert report.sentences == 1
    assert report.to_json()["data"]["folder"] == str(tmp_path)


@pytest.mark.slow
def test_reports_on_different_sentences_cannot_be_compared(run: Path, tmp_path: Path) -> None:
    report = load(run).evaluate("test")
    (tmp_path / "test.tsv").write_text("ab\tba\n")
    data = load(run).config.data.model_copy(update={"folder": str(tmp_path)})
    other = load(run).evaluate("test", data=data)
    with pytest.raises(DataError, match="were evaluated on different sentences"):
        compare_reports(report, other)
    assert {comparison.p_value for comparison in compare_reports(report, report)} == {1.0}


def test_replaced_report_is_intact(tmp_path: Path) -> None:
    path = tmp_path / "evaluation" / "test"
    for text in ("one", "two"):
        with atomic_folder(path) as folder:
            (folder / "report.json").write_text(text)
        assert find_damage(path) == []
    assert (path / "report.json").read_text() == "two"
