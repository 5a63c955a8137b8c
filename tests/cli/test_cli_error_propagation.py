"""seqloom error-propagation, on small runs."""

import json
from pathlib import Path

import pytest
from cli_recipes import train_recipe

from seqloom.analysis.error_propagation import ErrorPropagation, measure_error_propagation
from seqloom.data.readers.splits import read_split
from seqloom.inference.run import Run, load
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(worse: Path) -> Run:
    return load(worse)


@pytest.fixture(scope="module")
def result(run: Run) -> ErrorPropagation:
    return measure_error_propagation(run, list(read_split(run.config.data, "test")))


def test_log_probabilities_are_equal_up_to_the_first_error(result: ErrorPropagation) -> None:
    """The prefixes are the same up to the error, so the token at the error is equal, too."""
    assert result.with_error
    for sentence in result.sentences:
        same = (
            len(sentence.after_reference)
            if sentence.error_index is None
            else sentence.error_index + 1
        )
        assert sentence.after_reference[:same] == pytest.approx(
            sentence.after_error[:same], abs=1e-5
        )
        assert sentence.after_reference[:same] == pytest.approx(
            sentence.after_output[:same], abs=1e-5
        )
        if sentence.error_index is not None:
            assert sentence.wrong_piece != sentence.reference_pieces[sentence.error_index]


def test_one_token_after_the_error_both_wrong_prefixes_are_equal(result: ErrorPropagation) -> None:
    for sentence in result.with_error:
        assert sentence.error_index is not None
        after = sentence.error_index + 1
        if after < min(len(sentence.after_error), len(sentence.after_output)):
            assert sentence.after_error[after] == pytest.approx(
                sentence.after_output[after], abs=1e-5
            )


def test_log_probabilities_after_the_reference_equal_the_score(
    run: Run, result: ErrorPropagation
) -> None:
    sources = [sentence.source for sentence in result.sentences]
    scored = run.score(sources, [sentence.reference for sentence in result.sentences])
    for sentence, expected in zip(result.sentences, scored, strict=True):
        assert sentence.after_reference == pytest.approx(expected.log_probabilities, abs=1e-4)
        assert sentence.reference_pieces == expected.pieces


def test_own_outputs_as_references_have_no_errors(run: Run, worse: Path, tmp_path: Path) -> None:
    sources = [sentence.source for sentence in read_split(run.config.data, "test")]
    outputs = run.translate(sources, beam=1)
    kept = [
        (source, output.text)
        for source, output in zip(sources, outputs, strict=True)
        if output.finished
    ]
    pairs = tmp_path / "own.tsv"
    pairs.write_text("".join(f"{source}\t{text}\n" for source, text in kept), encoding="utf-8")
    result = run_cli("error-propagation", worse, pairs)
    assert result.exit_code == 0
    assert f"{len(kept)} outputs equal their reference, 0 differ" in result.stdout


def test_result_is_printed_written_and_drawn(worse: Path, tmp_path: Path) -> None:
    figure = tmp_path / "errors.svg"
    result = run_cli("error-propagation", worse, "--out", figure)
    assert result.exit_code == 0
    assert "first error: at token" in result.stdout
    assert "own output" in result.stdout
    assert figure.read_bytes().startswith(b"<svg")
    numbers = tmp_path / "errors.json"
    assert run_cli("error-propagation", worse, "--out", numbers).exit_code == 0
    content = json.loads(numbers.read_text(encoding="utf-8"))
    assert content["sentences"]
    assert {point["distance"] for point in content["curve"]} >= {0}


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("sentences", 78, "language model"),
        ("worse alone.txt", 65, "alone.txt:1: no reference. Give two files"),
        ("worse alone.txt short.txt", 65, "short.txt: ends after line 1, but the other"),
        ("worse column.tsv", 65, "column.tsv:1: only one column"),
        ("worse blank.tsv", 65, "no sentences"),
        ("worse --split moon", 2, "'moon' is not one of"),
        ("worse --out a.gif", 78, "png, svg, pdf"),
    ],
)
def test_invalid_input_is_rejected(
    recipes: Path, worse: Path, arguments: str, exit_code: int, message: str, tmp_path: Path
) -> None:
    run_name, *rest = arguments.split()
    if run_name == "sentences":
        train_recipe(recipes, "sentences")
    for name, text in {
        "alone.txt": "a b\nc d\n",
        "short.txt": "b a\n",
        "column.tsv": "a b\n",
        "blank.tsv": " \t \n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [tmp_path / part if part.endswith((".txt", ".tsv")) else part for part in rest]
    result = run_cli("error-propagation", recipes / "runs" / run_name, *files)
    assert result.exit_code == exit_code
    assert message in result.error
