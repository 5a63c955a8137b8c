"""Dataset checks: statistics, warnings and errors of the doctor."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.checks import statistics
from seqloom.data.checks.doctor import DatasetCheck, WorstBatch, examine
from seqloom.data.checks.statistics import LengthHistogram, SplitStatistics
from seqloom.data.checks.warnings import Finding
from seqloom.data.preparation import file_parts
from seqloom.data.preparation.workers import run_in_processes

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


def the_finding(check: DatasetCheck, text: str) -> Finding:
    """The only finding that contains the text."""
    (finding,) = [finding for finding in check.findings if text in finding.what]
    assert finding.advice
    return finding


def append(folder: Path, split: str, *rows: tuple[str, str]) -> None:
    with (folder / f"{split}.tsv").open("a") as file:
        file.write(tsv(list(rows)))


def test_clean_data_yields_statistics_and_no_findings(folder: Path) -> None:
    check = examine(recipe(folder))
    assert check.findings == ()
    assert not check.has_errors
    assert [(each.split, each.examples) for each in check.statistics] == [
        *(("train", 300), ("dev", 10), ("test", 10))
    ]
    assert check.worst_batch == WorstBatch(rows=25, source_length=3, target_length=4)
    train = check.statistics[0]
    assert train.source is not None
    histogram = dict(zip(LengthHistogram.lows, train.source.histogram.counts, strict=True))
    assert histogram[1] == 300


def test_exit_code_for_clean_data_is_zero(folder: Path) -> None:
    assert examine(recipe(folder)).exit_code == 0


def test_errors_of_all_splits_are_reported_together(folder: Path) -> None:
    (folder / "train.tsv").write_bytes(b"caf\xe9\tx\n")
    (folder / "dev.tsv").unlink()
    (folder / "test.tsv").write_text("no tab\n")
    check = examine(recipe(folder))
    assert check.has_errors
    assert check.worst_batch is None
    errors = [(f.where, f.what) for f in check.findings if f.level == "error"]
    assert [where for where, _ in errors] == ["data.train", "data.dev", "data.test"]
    for message, (_, what) in zip(
        ("not valid UTF-8", "no such file", "no second column"), errors, strict=True
    ):
        assert message in what


def test_unreadable_corpus_does_not_hide_the_next(folder: Path) -> None:
    train = [{"kind": "tsv", "path": name} for name in ("none.tsv", "train.tsv", "nor.tsv")]
    check = examine(recipe(folder, train=train))
    assert check.statistics[0].examples == 300
    assert the_finding(check, "none.tsv: there is no such file").level == "error"
    assert the_finding(check, "nor.tsv: there is no such file").level == "error"


def test_unequal_line_counts_are_an_error(folder: Path) -> None:
    (folder / "a").write_text("ab\ncd\n")
    (folder / "b").write_text("ba\n")
    check = examine(recipe(folder, dev={"kind": "parallel", "source": "a", "target": "b"}))
    assert the_finding(check, "has no partner").level == "error"


def test_line_ranges_are_noted(folder: Path) -> None:
    (folder / "a").write_text("ab\ncd\nef\n")
    (folder / "b").write_text("ba\ndc\nfe\n")
    corpus = {"kind": "parallel", "source": "a", "target": "b", "first_line": 2}
    check = examine(recipe(folder, dev=corpus, test={**corpus, "last_line": 2}))
    dev = the_finding(check, "a is read only from line 2 to the end; this split has 2 examples")
    test = the_finding(check, "a is read only from line 2 to line 2; this split has 1 examples")
    assert [(finding.level, finding.where) for finding in (dev, test)] == [
        ("note", "data.dev"),
        ("note", "data.test"),
    ]


@pytest.mark.parametrize("content", [b"no tab\n", b"caf\xe9\tx\n", b"", None])
def test_error_of_the_training_file_is_reported_once_for_the_training_split(
    folder: Path, content: bytes | None
) -> None:
    if content is None:
        (folder / "train.tsv").unlink()
    else:
        (folder / "train.tsv").write_bytes(content)
    hold_out = {"kind": "hold-out", "fraction": 0.1}
    check = examine(recipe(folder, dev=hold_out, test=hold_out))
    (error,) = [finding for finding in check.findings if finding.level == "error"]
    assert error.where == "data.train"
    assert not error.what.startswith("data.")
    assert check.exit_code == (66 if content is None else 65)
    assert check.worst_batch is None


def test_duplicates_are_noted_and_many_are_a_warning(folder: Path) -> None:
    append(folder, "train", CLEAN[0], CLEAN[0], (CLEAN[1][0], "abc"))
    check = examine(recipe(folder))
    assert the_finding(check, "2 of 303 examples are exact duplicates").level == "note"
    assert (
        the_finding(check, "1 of 303 examples have the same source as an earlier").level == "note"
    )
    append(folder, "train", *CLEAN[:100])
    assert the_finding(examine(recipe(folder)), "exact duplicates").level == "warning"


def test_many_untranslated_examples_are_a_warning(folder: Path) -> None:
    append(folder, "train", *((a * 3, a * 3) for a in LETTERS))
    finding = the_finding(examine(recipe(folder)), "26 of 326 examples have a target equal to")
    assert finding.level == "warning"


@pytest.mark.parametrize("split", ["dev", "test"])
def test_leaked_examples_are_a_warning_with_their_line(folder: Path, split: str) -> None:
    append(folder, split, CLEAN[5], (CLEAN[6][0], "abc"))
    finding = the_finding(examine(recipe(folder)), "is in the training split")
    assert f"2 of 12 {split} examples" in finding.what
    assert "(1 with the same target)" in finding.what
    assert finding.where == f"{folder}/{split}.tsv:11"
    assert finding.level == "warning"


def test_empty_examples_are_reported_by_side_with_their_line(folder: Path) -> None:
    append(folder, "train", ("", "ab"), ("ab", ""), ("cd", " "))
    finding = the_finding(examine(recipe(folder)), "3 of 303 train examples are empty")
    assert "empty source: 1; empty target: 2" in finding.what
    assert finding.where == f"{folder}/train.tsv:301"


def test_unknown_tokens_are_reported_per_side(folder: Path) -> None:
    append(folder, "test", ("éé", "ab"))
    finding = the_finding(examine(recipe(folder)), "unknown")
    assert finding.what == "9.09% of source tokens are unknown (2 of 22)"
    assert finding.where == "data.test"
    assert finding.level == "warning"


def test_extreme_lengths_are_reported_with_their_line(folder: Path) -> None:
    append(folder, "train", ("a" * 50, "b"))
    message = "50 tokens, but 99 % of the examples have 3 or fewer"
    finding = the_finding(examine(recipe(folder)), message)
    assert finding.where == f"{folder}/train.tsv:301"


def test_example_too_long_for_any_batch_is_an_error(folder: Path) -> None:
    append(folder, "train", ("a" * 200, "b"))
    check = examine(recipe(folder))
    assert the_finding(check, "longer than a batch may be").level == "error"
    assert check.exit_code == DataError.exit_code


def test_window_too_long_for_any_batch_is_an_error_of_the_recipe(folder: Path) -> None:
    corpora = {
        split: {"kind": "long-text", "path": f"{split}.tsv", "length": 200}
        for split in ("train", "dev", "test")
    }
    config = RunConfig.model_validate(
        {
            "task": {"kind": "language-model"},
            "data": {"folder": str(folder), **corpora},
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {"encoder": {"kind": "none"}, "decoder": {"kind": "transformer"}},
            "training": {"steps": 1, "schedule": {"kind": "constant"}, "batch_tokens": 100},
        }
    )
    check = examine(config)
    assert the_finding(check, "longer than a whole batch").level == "error"
    assert check.exit_code == ConfigError.exit_code


def test_filtered_examples_are_noted_by_filter(folder: Path) -> None:
    append(folder, "train", ("a" * 50, "b"), ("", "a"))
    check = examine(recipe(folder, filter={"max_source_tokens": 40}))
    finding = the_finding(check, "the filters drop 1 of 302 examples")
    assert "source above max_source_tokens: 1" in finding.what
    assert finding.level == "note"


def test_splits_are_examined_even_if_the_tokenizers_cannot_be_trained(folder: Path) -> None:
    append(folder, "test", CLEAN[5])
    config = recipe(folder)
    text = config.text.model_validate({"tokenizer": {"kind": "subwords", "size": 5}})
    check = examine(config.model_copy(update={"text": text}))
    (error,) = [finding for finding in check.findings if finding.level == "error"]
    assert error.where == "text"
    assert "subwords" in error.what
    assert the_finding(check, "is in the training split").level == "warning"


def test_duplicates_in_synthetic_data_are_no_warning(folder: Path) -> None:
    synthetic = {"kind": "synthetic", "task": "copy", "examples": 200, "max_length": 2}
    check = examine(recipe(folder, train=synthetic, dev=synthetic, test=synthetic))
    assert all(finding.level == "note" for finding in check.findings)


@pytest.mark.parametrize(
    ("form", "level", "advice"),
    [
        ("nfc", "note", "text.normalization = 'nfc' normalises them"),
        ("none", "warning", "set text.normalization = 'nfc'"),
    ],
)
def test_other_unicode_forms_are_reported_with_their_lines(
    folder: Path, form: str, level: str, advice: str
) -> None:
    append(folder, "dev", ("cafe\u0301", "x"), ("y", "cafe\u0301"))
    config = recipe(folder)
    text = config.text.model_copy(update={"normalization": form})
    check = examine(config.model_copy(update={"text": text}))
    for side in ("sources", "targets"):
        finding = the_finding(check, f"{side} are not in the Unicode form NFC")
        assert (finding.level, finding.where) == (level, "data.dev")
        assert "dev.tsv:" in finding.what
        assert advice in finding.advice


def test_invisible_characters_and_mixed_scripts_are_warnings_with_their_lines(
    folder: Path,
) -> None:
    append(folder, "test", ("a\u200bb", "\u0410pple"))
    check = examine(recipe(folder))
    invisible = the_finding(check, "1 of 11 sources have invisible characters")
    assert "U+200B ZERO WIDTH SPACE" in invisible.what
    mixed = the_finding(check, "1 of 11 targets have words that mix")
    assert "test.tsv:11: '\u0410pple'" in mixed.what
    assert invisible.level == mixed.level == "warning"


UNUSUAL = [
    ("a", ""),
    ("x" * 90, "yy"),
    ("in\u200bvisible", "b"),
    ("cafe\u0301", "d"),
    CLEAN[0],
    CLEAN[1],
    ("same", "same"),
]


@pytest.mark.slow
@pytest.mark.parametrize("invalid_lines", ["skip", "error"])
def test_several_processes_count_what_one_process_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, invalid_lines: str
) -> None:
    append(folder, "train", *UNUSUAL)
    with (folder / "train.tsv").open("a") as file:
        file.write("no second column\n")
    append(folder, "train", *UNUSUAL)
    monkeypatch.setattr(statistics, "MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(file_parts, "PART_BYTES", 600)
    run = Mock(wraps=run_in_processes)
    monkeypatch.setattr(statistics, "run_in_processes", run)
    checks = []
    read: list[tuple[str, int]] = []
    for workers in (1, 2):
        data = {
            "dev": {"kind": "hold-out", "fraction": 0.1},
            "filter": {"max_source_tokens": 50},
            "invalid_lines": invalid_lines,
            "workers": workers,
        }
        checks.append(examine(recipe(folder, **data), lambda *progress: read.append(progress)))
    assert read[-3][0] == "train"
    assert read[-3][1] > 250, "the progress of the processes is reported"
    assert run.call_count == 1
    assert len(run.call_args.args[1]) > 3, "the file is cut into several parts"
    one, several = checks
    assert several.findings == one.findings
    assert (several.worst_batch, several.exit_code) == (one.worst_batch, one.exit_code)
    for mine, other in zip(several.statistics, one.statistics, strict=True):
        assert counts_of(mine) == counts_of(other)


def test_progress_does_not_drop_at_the_end_of_a_part(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held-out examples are read, but they are not examples of the training split."""
    monkeypatch.setattr(statistics, "MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(statistics, "PROGRESS_EVERY", 1)
    monkeypatch.setattr(file_parts, "PART_BYTES", 600)
    data = recipe(folder, dev={"kind": "hold-out", "fraction": 0.3}, workers=2).data
    parts = statistics._parts_for_processes(data, "train", None)
    assert len(parts) > 1
    for part in parts:
        reported: list[int] = []
        counted = statistics._part_statistics(data, None, part, reported.append)
        assert reported == sorted(reported)
        assert reported[-1] == counted.examples


def counts_of(counted: SplitStatistics) -> dict[str, Any]:
    """All statistics of a split. Errors are compared by their messages."""
    unequal = {"pairs": None, "sources": None, "problems": [str(each) for each in counted.problems]}
    return vars(counted) | unequal
