"""seqloom evaluate: the report, other data, and comparisons between runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import BundledConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.decoding import GreedyConfig
from seqloom.core.errors import StorageError
from seqloom.data.example import Example
from seqloom.inference.evaluation.examples import differing_examples, overlap, worst_examples
from seqloom.inference.evaluation.report import EvaluationReport
from seqloom.inference.prediction import Prediction
from seqloom.inference.predictor import Predictor
from seqloom.inference.run import Run
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow

DATA = DataConfig(train=(BundledConfig(source="de", target="en"),))


def test_scores_are_printed_even_if_they_cannot_be_saved(
    reverse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(EvaluationReport, "save", full)
    result = run_cli("evaluate", reverse)
    assert result.exit_code == 0
    assert "warning: outputs and scores could not be saved: the disk is full" in result.stderr
    assert "BLEU" in result.stdout


def test_scores_are_printed_and_saved(reverse: Path) -> None:
    result = run_cli("evaluate", reverse, "--beam", 2)
    assert result.exit_code == 0
    for words in ("20 sentences of test", "BLEU", "tok:13a", "exact match", "reference", "output"):
        assert words in result.stdout
    saved = json.loads((reverse / "evaluation" / "test" / "report.json").read_bytes())
    shown = json.loads(run_cli("evaluate", reverse, "--beam", 2, "--json").stdout)
    assert shown["scores"] == saved["scores"]
    assert shown["decoding"]["width"] == 2


def test_two_runs_are_compared_with_a_bootstrap_test(reverse: Path, tmp_path: Path) -> None:
    other = shutil.copytree(reverse, tmp_path / "other")
    result = run_cli("evaluate", reverse, "--against", other)
    assert "difference" in result.stdout
    assert "paired bootstrap" in result.stdout
    record = json.loads(run_cli("evaluate", reverse, "--against", other, "--json").stdout)
    assert (record["run"], record["against"]["run"]) == (str(reverse), str(other))
    assert {each["p_value"] for each in record["comparisons"]} == {1.0}


def test_set_replaces_the_test_data(reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("ab\tba\ncd\tdc\nabc\tcba\n", encoding="utf-8")
    test = ("--set", 'data.test={kind="tsv", path="x.tsv"}', "--set", f"data.folder={tmp_path}")
    result = run_cli("evaluate", reverse, *test, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["sentences"] == 3
    foreign = run_cli("evaluate", reverse, "--set", "training.steps=1")
    assert foreign.exit_code == 78
    assert "Only settings of decoding and engine and data can be changed" in foreign.stderr


def test_replaced_report_with_other_data_or_decoding_is_mentioned(
    reverse: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(reverse, tmp_path / "run")
    shutil.rmtree(run / "evaluation", ignore_errors=True)
    (tmp_path / "x.tsv").write_text("ab\tba\n", encoding="utf-8")
    other = ("--set", f'data.test={{kind="tsv", path="{tmp_path}/x.tsv"}}', "--beam", "2")
    saved = f"Outputs and scores are in {run}/evaluation/test."
    for options, message in (
        ((), saved),
        ((), saved),
        (other, f"{saved} They replace a report that differs in data and decoding."),
        (other, saved),
    ):
        assert run_cli("evaluate", run, *options).stderr.splitlines()[-1] == message


def test_missing_split_gives_an_example_of_how_to_set_it(sentences: Path) -> None:
    result = run_cli("evaluate", sentences)
    assert result.exit_code == 78
    assert """--set 'data.test={kind="tsv", path="test.tsv"}'""" in result.stderr


def test_worst_outputs_are_printed(reverse: Path, tmp_path: Path) -> None:
    output = run_cli("translate", reverse, stdin=b"ab\n").stdout.strip()
    rows = [*([f"ab\t{output}"] * 9), "ab\tzzzz", *([f"ab\t{output}"] * 9)]
    (tmp_path / "x.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    test = f'data.test={{kind="tsv", path="{tmp_path}/x.tsv"}}'
    result = run_cli("evaluate", reverse, "--set", test)
    _, _, shown = result.stdout.partition(
        "the 5 outputs with the least overlap with their references\n"
    )
    assert [line.split() for line in shown.splitlines()[:3]] == [
        *(["source", "ab"], ["reference", "zzzz"], ["output", output])
    ]


def test_comparison_lists_differing_outputs(reverse: Path, tmp_path: Path) -> None:
    other = shutil.copytree(reverse, tmp_path / "other")
    result = run_cli("evaluate", reverse, "--against", other)
    assert result.stdout.count("exact match") == 1
    assert "0 of 20 outputs differ\n" in result.stdout
    assert "least overlap" not in result.stdout


def test_examples_are_sorted_by_difference_and_by_overlap() -> None:
    examples = tuple(Example(text, text, (text,), "") for text in ("a b", "c d", "e f"))

    def report(run: str, *outputs: str) -> EvaluationReport:
        return EvaluationReport(
            run, "test", 3, (), (), examples, outputs, 0, 0, GreedyConfig(), DATA
        )

    first, second = report("one", "a b", "c x", "y f"), report("other", "a b", "c d", "z z")
    assert differing_examples(first, second) == [1, 2]
    assert differing_examples(first, report("other", "a b", "x d", "e f")) == [2, 1]
    assert worst_examples(first, 2) == [1, 2]
    assert worst_examples(second, 1) == [2]


def test_empty_outputs_are_reported(reverse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predict = Predictor.predict

    def predict_two_empty(*arguments: Any, **options: Any) -> list[list[Prediction]]:
        outputs = predict(*arguments, **options)
        return [*([Prediction(" ", 0.0)] for _ in range(2)), *outputs[2:]]

    monkeypatch.setattr(Predictor, "predict", predict_two_empty)
    result = run_cli("evaluate", reverse)
    assert f"{reverse.name}: 2 of 20 outputs are empty." in result.stdout
    assert json.loads(run_cli("evaluate", reverse, "--json").stdout)["empty"] == 2


def test_runs_of_different_tasks_are_not_compared(
    reverse: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "evaluate", None)
    result = run_cli("evaluate", reverse, "--against", sentences)
    assert result.exit_code == 78
    assert f"{sentences} is for language-model and {reverse} is for translation" in result.stderr


def test_two_language_models_are_compared(sentences: Path, tmp_path: Path) -> None:
    other = shutil.copytree(sentences, tmp_path / "other")
    result = run_cli("evaluate", sentences, "--against", other, "--split", "dev")
    assert result.exit_code == 0, result.stderr
    assert "perplexity" in result.stdout


def test_beam_overrides_settings_with_a_warning(reverse: Path) -> None:
    for setting in ("decoding.kind=greedy", "decoding.width=7", "decoding={kind='greedy'}"):
        result = run_cli("evaluate", reverse, "--beam", 2, "--set", setting, "--json")
        assert json.loads(result.stdout)["decoding"]["width"] == 2
        assert f"warning: --beam 2 overrides --set {setting}" in result.stderr


words = st.text("ab ", max_size=8)


@given(words, words)
def test_overlap_is_symmetric_and_one_for_equal_texts(first: str, second: str) -> None:
    assert overlap(first, [first]) == (1.0, 1.0)
    assert overlap(first, [second]) == overlap(second, [first])
    assert overlap(first, [second, first]) == (1.0, 1.0)
    assert all(0 <= share <= 1 for share in overlap(first, [second]))
