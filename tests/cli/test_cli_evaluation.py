"""What evaluation shows, on which data, and between which runs."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from calling import call
from cli_workshop import trained, workshop_at
from hypothesis import given
from hypothesis import strategies as st

from seqloom.cli.work.examples import differing, overlap, worst
from seqloom.config.schema.corpora import BundledConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.decoding import GreedyConfig
from seqloom.data.example import Example
from seqloom.runs.evaluation.report import EvaluationReport
from seqloom.runs.run import Run

DATA = DataConfig(train=(BundledConfig(source="de", target="en"),))


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workshop_at(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module")
def reverse(workshop: Path) -> Path:
    return trained(workshop, "reverse")


@pytest.fixture(scope="module")
def sentences(workshop: Path) -> Path:
    return trained(workshop, "sentences")


def test_a_run_is_scored_on_other_data_that_are_given_now(reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("ab\tba\ncd\tdc\nabc\tcba\n", encoding="utf-8")
    test = ("--set", 'data.test={kind="tsv", path="x.tsv"}', "--set", f"data.folder={tmp_path}")
    answer = call("evaluate", reverse, *test, "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["sentences"] == 3
    foreign = call("evaluate", reverse, "--set", "training.steps=1")
    assert foreign.code == 78
    assert "only settings of decoding and engine and data can be changed now" in foreign.err


def test_what_is_replaced_by_scores_of_something_else_is_told(
    reverse: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(reverse, tmp_path / "run")
    shutil.rmtree(run / "evaluation", ignore_errors=True)
    (tmp_path / "x.tsv").write_text("ab\tba\n", encoding="utf-8")
    other = ("--set", f'data.test={{kind="tsv", path="{tmp_path}/x.tsv"}}', "--beam", "2")
    place = f"outputs and scores are in {run}/evaluation/test"
    for options, words in (
        ((), place),
        ((), place),
        (other, f"{place}, in place of those with other data and decoding"),
        (other, place),
    ):
        assert call("evaluate", run, *options).err.splitlines()[-1] == words


def test_a_split_that_is_not_set_is_answered_with_what_to_type(sentences: Path) -> None:
    answer = call("evaluate", sentences)
    assert answer.code == 78
    assert """evaluate RUN --set 'data.test={kind="tsv", path="test.tsv"}'""" in answer.err


def test_the_worst_outputs_are_shown(reverse: Path, tmp_path: Path) -> None:
    output = call("translate", reverse, given=b"ab\n").out.strip()
    rows = [*([f"ab\t{output}"] * 9), "ab\tzzzz", *([f"ab\t{output}"] * 9)]
    (tmp_path / "x.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    test = f'data.test={{kind="tsv", path="{tmp_path}/x.tsv"}}'
    answer = call("evaluate", reverse, "--set", test)
    _, _, shown = answer.out.partition("the 5 outputs least like their references\n")
    assert [line.split() for line in shown.splitlines()[:3]] == [
        *(["source", "ab"], ["reference", "zzzz"], ["output", output])
    ]


def test_two_runs_are_shown_side_by_side_with_what_differs(reverse: Path, tmp_path: Path) -> None:
    other = shutil.copytree(reverse, tmp_path / "other")
    answer = call("evaluate", reverse, "--against", other)
    assert answer.out.count("exact match") == 1
    assert "0 of 20 outputs differ\n" in answer.out
    assert "least like" not in answer.out


def test_what_differs_most_is_shown_first() -> None:
    examples = tuple(Example(text, text, (text,), "") for text in ("a b", "c d", "e f"))

    def report(run: str, *outputs: str) -> EvaluationReport:
        return EvaluationReport(run, "test", 3, (), (), examples, outputs, 0, GreedyConfig(), DATA)

    one, other = report("one", "a b", "c x", "y f"), report("other", "a b", "c d", "z z")
    assert differing(one, other) == [1, 2]
    assert differing(one, report("other", "a b", "x d", "e f")) == [2, 1]
    assert worst(one, 2) == [1, 2]
    assert worst(other, 1) == [2]


def test_a_language_model_is_not_compared_with_a_translator(
    reverse: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "evaluate", None)
    answer = call("evaluate", reverse, "--against", sentences)
    assert answer.code == 78
    assert f"{sentences} is for language-model and {reverse} is for translation" in answer.err


def test_two_language_models_are_shown_side_by_side(sentences: Path, tmp_path: Path) -> None:
    other = shutil.copytree(sentences, tmp_path / "other")
    answer = call("evaluate", sentences, "--against", other, "--split", "dev")
    assert answer.code == 0, answer.err
    assert "perplexity" in answer.out


def test_the_beam_wins_over_a_setting_and_says_so(reverse: Path) -> None:
    for setting in ("decoding.kind=greedy", "decoding.width=7", "decoding={kind='greedy'}"):
        answer = call("evaluate", reverse, "--beam", 2, "--set", setting, "--json")
        assert json.loads(answer.out)["decoding"]["width"] == 2
        assert f"warning: --beam 2 wins over --set {setting}" in answer.err


words = st.text("ab ", max_size=8)


@given(words, words)
def test_overlap_is_whole_for_itself_and_the_same_both_ways(one: str, other: str) -> None:
    assert overlap(one, [one]) == (1.0, 1.0)
    assert overlap(one, [other]) == overlap(other, [one])
    assert overlap(one, [other, one]) == (1.0, 1.0)
    assert all(0 <= share <= 1 for share in overlap(one, [other]))
