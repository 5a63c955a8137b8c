"""seqloom translate and seqloom score, on small runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seqloom.core.errors import DataError
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


def test_each_input_line_gives_one_output_line_in_order(reverse: Path) -> None:
    texts = ["abc", "", "  ", "d", "abcd", "dcba"]
    result = run_cli("translate", reverse, stdin="\n".join(texts).encode())
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(texts)
    assert lines[1] == lines[2] == ""
    separate = [run_cli("translate", reverse, stdin=f"{text}\n".encode()).stdout for text in texts]
    assert [f"{line}\n" for line in lines] == separate


def test_portions_do_not_change_the_output(
    reverse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run_cli("translate", reverse, "--n-best", 2, stdin=b"ab\n\ncd\nabcd\na\n")
    monkeypatch.setattr("seqloom.jobs.batch_translation.portions.CPU_PORTION", 2)
    (tmp_path / "1").write_text("ab\n\n", encoding="utf-8")
    (tmp_path / "2").write_text("cd\nabcd\na\n", encoding="utf-8")
    portions = run_cli("translate", reverse, tmp_path / "1", tmp_path / "2", "--n-best", 2)
    assert portions.stdout == expected.stdout
    assert [line.split(" ||| ")[0] for line in portions.stdout.splitlines()] == [
        *"00",
        "1",
        *"223344",
    ]


def test_scores_alignments_and_n_best_fields_are_separated_by_bars(reverse: Path) -> None:
    plain = run_cli("translate", reverse, stdin=b"abc\n").stdout.strip()
    scored = run_cli(
        "translate", reverse, "--scores", "--alignments", stdin=b"abc\n"
    ).stdout.strip()
    text, score, alignment = scored.split(" ||| ")
    assert text == plain
    assert float(score) < 0
    assert all(len(pair.split("-")) == 2 for pair in alignment.split())
    listed = run_cli("translate", reverse, "--n-best", 3, "--beam", 4, stdin=b"abc\n").stdout
    rows = [line.split(" ||| ") for line in listed.splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "0"]
    scores = [float(row[3]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    for _, _, steps, total in rows:
        values = [float(value) for value in steps.split()]
        # The score is log p per token, without END.
        assert sum(values) / (len(values) - 1) == pytest.approx(float(total), abs=1e-3)


def test_json_output_is_one_object_per_line(reverse: Path) -> None:
    result = run_cli("translate", reverse, "--json", "--alignments", stdin="ab\nü\n".encode())
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["id"] for record in records] == [0, 1]
    assert [record["source"] for record in records] == ["ab", "ü"]
    (output,) = records[0]["outputs"]
    assert len(output["attention"]) == len(output["pieces"])
    assert {"text", "score", "finished", "log_probabilities", "alignment"} <= set(output)


@pytest.mark.parametrize(
    "settings",
    [
        ("--set", "decoding.kind=greedy", "--set", "decoding.max_length=1"),
        ("--set", "decoding={kind='greedy', max_length=1}"),
    ],
)
def test_truncated_outputs_give_a_warning(reverse: Path, settings: tuple[str, ...]) -> None:
    result = run_cli("translate", reverse, *settings, stdin=b"abcd\n\nabcd\n")
    assert len(result.stdout.splitlines()) == 3
    assert "2 of 3 outputs reached the length limit (line 1, 3)" in result.stderr


@pytest.mark.parametrize(
    ("options", "stdin", "exit_code", "message"),
    [
        (
            ["--set", "training.steps=1"],
            b"a\n",
            78,
            "Only settings of decoding and engine can be changed",
        ),
        (["--set", "decoding.widht=1"], b"a\n", 78, "'width'"),
        (["--n-best", "9"], b"a\n", 78, "--beam 9"),
        (["--n-best", "3", "--beam", "2"], b"a\n", 78, "--beam 3"),
        (["--n-best", "2", "--set", "decoding.kind=greedy"], b"", 78, "greedy"),
        (["--n-best", "2", "--set", "decoding.kind=sample"], b"", 78, "samples"),
        (["no.txt", "nor.txt"], b"", 66, "no.txt: no such file\nnor.txt: no such file"),
        (["ein Satz"], b"", 66, "write it to standard input: echo '…' | seqloom …"),
        ([], b"ok\n\xff\n", 65, "stdin:2: byte 1"),
        ([], b"a" * 1_000_001 + b"\n", 65, "stdin:1: "),
    ],
)
def test_invalid_input_is_rejected(
    reverse: Path, options: list[str], stdin: bytes, exit_code: int, message: str
) -> None:
    result = run_cli("translate", reverse, *options, stdin=stdin)
    assert result.exit_code == exit_code
    assert message in result.stderr


def test_missing_file_is_reported_before_the_run_is_loaded(
    reverse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.inference.run.load", None)
    result = run_cli("translate", reverse, "no.txt")
    assert result.stderr.splitlines() == ["error: no.txt: no such file"]


def test_dash_stands_for_standard_input_among_files(reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ab\n", encoding="utf-8")
    expected = run_cli("translate", reverse, stdin=b"ab\ncd\n").stdout
    assert run_cli("translate", reverse, "-", stdin=b"ab\ncd\n").stdout == expected
    assert run_cli("translate", reverse, tmp_path / "a", "-", stdin=b"cd\n").stdout == expected


def test_error_in_a_later_portion_names_the_line_of_the_input(
    reverse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict = Run.predict

    def predict_strictly(
        run: Run, texts: Sequence[str], options: PredictionOptions, **rest: Any
    ) -> list[list[Prediction]]:
        if "bad" in texts:
            raise DataError(f"line {options.first + texts.index('bad') + 1}: is bad")
        return predict(run, texts, options, **rest)

    monkeypatch.setattr(Run, "predict", predict_strictly)
    monkeypatch.setattr("seqloom.jobs.batch_translation.portions.CPU_PORTION", 2)
    result = run_cli("translate", reverse, stdin=b"a\nb\nc\nbad\n")
    assert (result.exit_code, result.stderr) == (65, "error: line 4: is bad\n")
    assert len(result.stdout.splitlines()) == 2


def test_score_equals_the_log_probabilities_of_translate(reverse: Path, tmp_path: Path) -> None:
    listed = run_cli("translate", reverse, "--n-best", 2, stdin=b"abc\n").stdout
    rows = [line.split(" ||| ") for line in listed.splitlines()]
    (tmp_path / "source").write_text("abc\nabc\n", encoding="utf-8")
    (tmp_path / "target").write_text("".join(f"{row[1]}\n" for row in rows), encoding="utf-8")
    result = run_cli("score", reverse, tmp_path / "source", tmp_path / "target")
    for row, line in zip(rows, result.stdout.splitlines(), strict=True):
        total = sum(float(value) for value in row[2].split())
        assert float(line) == pytest.approx(total, abs=1e-3)


def test_score_rejects_files_that_do_not_match_the_run(
    reverse: Path, sentences: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("abc\nabc\n", encoding="utf-8")
    (tmp_path / "b").write_text("abc\n", encoding="utf-8")
    unequal = run_cli("score", reverse, tmp_path / "a", tmp_path / "b")
    assert unequal.exit_code == 65
    assert "b: ends after line 1, but the other file has more lines" in unequal.stderr
    assert "give two files" in run_cli("score", reverse, tmp_path / "a").stderr
    assert "Give one file" in run_cli("score", sentences, tmp_path / "a", tmp_path / "b").stderr
    assert len(run_cli("score", sentences, tmp_path / "a").stdout.splitlines()) == 2


def test_a_glossary_forces_phrases(reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("abc\taab\nd\tλ\n", encoding="utf-8")
    result = run_cli("translate", reverse, "--glossary", tmp_path / "terms.tsv", stdin=b"abc\nd\n")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split().count("aab") == 1
    assert "1 of 2 lines has glossary phrases" in result.stderr
    assert "(line 2): λ" in result.stderr


def test_an_invalid_glossary_is_reported_before_the_run_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("abc\n", encoding="utf-8")
    result = run_cli("translate", tmp_path, "--glossary", tmp_path / "terms.tsv", stdin=b"abc\n")
    assert result.exit_code == 65
    assert "terms.tsv: the glossary is not valid:\n  line 1: must be" in result.stderr
