from pathlib import Path
from typing import Any

import pytest

from seqloom.config.schema.recipe import RunConfig
from seqloom.data.doctor import Findings, WorstBatch, examine
from seqloom.data.oddities import Finding
from seqloom.data.survey import Histogram

LETTERS = "abcdefghijklmnopqrstuvwxyz"
CLEAN = [(f"{a}{b}", f"{b}{a}!") for a in LETTERS for b in LETTERS if a < b]


def tsv(rows: list[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in rows)


def recipe(folder: Path, **data: Any) -> RunConfig:
    files = {name: {"kind": "tsv", "path": f"{name}.tsv"} for name in ("train", "dev", "test")}
    return RunConfig.model_validate(
        {
            "data": {"folder": str(folder), **files, **data},
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
            "training": {"steps": 1, "schedule": {"kind": "constant"}, "batch_tokens": 100},
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.tsv").write_text(tsv(CLEAN[:300]))
    (tmp_path / "dev.tsv").write_text(tsv(CLEAN[300:310]))
    (tmp_path / "test.tsv").write_text(tsv(CLEAN[310:320]))
    return tmp_path


def only(findings: Findings, words: str) -> Finding:
    (finding,) = [finding for finding in findings.findings if words in finding.what]
    assert finding.advice
    return finding


def append(folder: Path, split: str, *rows: tuple[str, str]) -> None:
    with (folder / f"{split}.tsv").open("a") as file:
        file.write(tsv(list(rows)))


def test_clean_data_have_no_findings_and_all_their_facts(folder: Path) -> None:
    result = examine(recipe(folder))
    assert result.findings == ()
    assert not result.has_errors
    assert [(s.split, s.examples) for s in result.surveys] == [
        *(("train", 300), ("dev", 10), ("test", 10))
    ]
    assert result.worst_batch == WorstBatch(rows=25, source_length=3, target_length=4)
    train = result.surveys[0]
    assert train.source is not None
    assert dict(zip(Histogram.lows, train.source.histogram.counts, strict=True))[1] == 300


def test_everything_that_stops_reading_is_reported_at_once(folder: Path) -> None:
    (folder / "train.tsv").write_bytes(b"caf\xe9\tx\n")
    (folder / "dev.tsv").unlink()
    (folder / "test.tsv").write_text("no tab\n")
    findings = examine(recipe(folder))
    assert findings.has_errors
    assert findings.worst_batch is None
    errors = [(f.where, f.what) for f in findings.findings if f.level == "error"]
    assert [where for where, _ in errors] == ["data.train", "data.dev", "data.test"]
    for message, (_, what) in zip(
        ("not valid UTF-8", "no such file", "no second column"), errors, strict=True
    ):
        assert message in what


def test_a_corpus_that_cannot_be_read_does_not_hide_the_next(folder: Path) -> None:
    train = [{"kind": "tsv", "path": name} for name in ("none.tsv", "train.tsv", "nor.tsv")]
    findings = examine(recipe(folder, train=train))
    assert findings.surveys[0].examples == 300
    only(findings, "none.tsv: there is no such file")
    only(findings, "nor.tsv: there is no such file")


def test_unequal_line_counts_are_an_error(folder: Path) -> None:
    (folder / "a").write_text("ab\ncd\n")
    (folder / "b").write_text("ba\n")
    findings = examine(recipe(folder, dev={"kind": "parallel", "source": "a", "target": "b"}))
    assert only(findings, "has no partner").level == "error"


def test_lines_that_are_left_out_are_told(folder: Path) -> None:
    (folder / "a").write_text("ab\ncd\nef\n")
    (folder / "b").write_text("ba\ndc\nfe\n")
    some = {"kind": "parallel", "source": "a", "target": "b", "first_line": 2}
    findings = examine(recipe(folder, dev=some, test={**some, "last_line": 2}))
    dev = only(findings, "a is read from line 2 to the end, 2 examples in this split")
    test = only(findings, "a is read from line 2 to line 2, 1 examples in this split")
    assert [(one.level, one.where) for one in (dev, test)] == [
        ("note", "data.dev"),
        ("note", "data.test"),
    ]


@pytest.mark.parametrize("content", [b"no tab\n", b"caf\xe9\tx\n", b"", None])
def test_a_fault_of_the_training_file_is_told_once_as_that(
    folder: Path, content: bytes | None
) -> None:
    if content is None:
        (folder / "train.tsv").unlink()
    else:
        (folder / "train.tsv").write_bytes(content)
    held_out = {"kind": "hold-out", "fraction": 0.1}
    findings = examine(recipe(folder, dev=held_out, test=held_out))
    (error,) = [finding for finding in findings.findings if finding.level == "error"]
    assert error.where == "data.train"
    assert not error.what.startswith("data.")
    assert findings.exit_code == (66 if content is None else 65)
    assert findings.worst_batch is None


def test_healthy_data_end_well(folder: Path) -> None:
    assert examine(recipe(folder)).exit_code == 0


def test_repeated_examples_are_counted(folder: Path) -> None:
    append(folder, "train", CLEAN[0], CLEAN[0], (CLEAN[1][0], "abc"))
    findings = examine(recipe(folder))
    assert only(findings, "2 of 303 examples are repeated word for word").level == "note"
    assert only(findings, "1 of 303 examples give another target").level == "note"
    append(folder, "train", *CLEAN[:100])
    assert only(examine(recipe(folder)), "repeated word for word").level == "warning"


def test_untranslated_examples_are_counted(folder: Path) -> None:
    append(folder, "train", *((a * 3, a * 3) for a in LETTERS))
    finding = only(examine(recipe(folder)), "26 of 326 examples have a target equal to")
    assert finding.level == "warning"


@pytest.mark.parametrize("split", ["dev", "test"])
def test_leaks_are_found_with_their_line(folder: Path, split: str) -> None:
    append(folder, split, CLEAN[5], (CLEAN[6][0], "abc"))
    finding = only(examine(recipe(folder)), "is in the training split")
    assert f"2 of 12 {split} examples" in finding.what
    assert "(1 with the same target)" in finding.what
    assert finding.where == f"{folder}/{split}.tsv:11"
    assert finding.level == "warning"


def test_empty_lines_are_found_with_their_kind_and_line(folder: Path) -> None:
    append(folder, "train", ("", "ab"), ("ab", ""), ("cd", " "))
    finding = only(examine(recipe(folder)), "3 of 303 train examples are empty")
    assert "empty source: 1; empty target: 2" in finding.what
    assert finding.where == f"{folder}/train.tsv:301"


def test_the_share_of_unknown_tokens_is_told_for_each_side(folder: Path) -> None:
    append(folder, "test", ("éé", "ab"))
    finding = only(examine(recipe(folder)), "unknown")
    assert finding.what == "9.09% of source tokens are unknown (2 of 22)"
    assert finding.where == "data.test"
    assert finding.level == "warning"


def test_extreme_lengths_are_found_with_their_line(folder: Path) -> None:
    append(folder, "train", ("a" * 50, "b"))
    finding = only(examine(recipe(folder)), "50 tokens, where 99 of 100 examples have 3 or fewer")
    assert finding.where == f"{folder}/train.tsv:301"


def test_an_example_too_long_for_any_batch_is_an_error(folder: Path) -> None:
    append(folder, "train", ("a" * 200, "b"))
    findings = examine(recipe(folder))
    assert only(findings, "longer than a whole batch may be").level == "error"


def test_what_the_filters_drop_is_told_by_filter(folder: Path) -> None:
    append(folder, "train", ("a" * 50, "b"), ("", "a"))
    findings = examine(recipe(folder, filter={"max_source_tokens": 40}))
    finding = only(findings, "the filters leave out 1 of 302 examples")
    assert "source above max_source_tokens: 1" in finding.what
    assert finding.level == "note"


def test_a_vocabulary_that_cannot_be_learned_is_an_error_and_the_rest_is_still_examined(
    folder: Path,
) -> None:
    append(folder, "test", CLEAN[5])
    config = recipe(folder)
    text = config.text.model_validate({"tokenizer": {"kind": "subwords"}})
    findings = examine(config.model_copy(update={"text": text}))
    assert only(findings, "subwords does not fit").where == "text"
    only(findings, "is in the training split")


def test_made_up_examples_may_repeat_and_copy(folder: Path) -> None:
    synthetic = {"kind": "synthetic", "task": "copy", "examples": 200, "max_length": 2}
    findings = examine(recipe(folder, train=synthetic, dev=synthetic, test=synthetic))
    assert all(finding.level == "note" for finding in findings.findings)
