"""seqloom augment: the pairs, what is left out, continuing, and errors."""

from pathlib import Path

import pytest

from seqloom.config.schema.corpora import TsvConfig
from seqloom.config.schema.data import DataConfig
from seqloom.data.readers.splits import read_split
from seqloom.jobs.batch_translation.output_file import OutputFile
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("ab\n\ncd\nda\n", encoding="utf-8")
    return path


def translations(run: Path, text_file: Path) -> list[str]:
    return run_cli("translate", run, text_file).stdout.splitlines()


def test_pairs_are_the_lines_and_their_translations(
    reverse: Path, text_file: Path, tmp_path: Path
) -> None:
    """The pairs can be read as training data."""
    outputs = translations(reverse, text_file)
    texts = text_file.read_text(encoding="utf-8").splitlines()
    expected = [(a, b) for a, b in zip(outputs, texts, strict=True) if b and a and a != b]
    assert expected, "the run must translate at least one line"
    for side in ("target", "source"):
        path = tmp_path / f"{side}.tsv"
        result = run_cli("augment", reverse, text_file, "--output", path, "--side", side)
        assert result.exit_code == 0, result.stderr
        data = DataConfig(train=TsvConfig(path=str(path)))
        pairs = [(each.source, each.target) for each in read_split(data, "train")]
        assert pairs == (expected if side == "target" else [pair[::-1] for pair in expected])
        assert f"{path}: {len(expected)} pairs from 4 lines." in result.stderr
        assert "Left out 1 lines: the line is blank." in result.stderr


def test_tag_marks_synthetic_sources(reverse: Path, text_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    result = run_cli("augment", reverse, text_file, "--output", path, "--tag", "<BT>")
    assert result.exit_code == 0, result.stderr
    assert all(row.startswith("<BT> ") for row in path.read_text().splitlines())


def test_interrupted_command_continues(reverse: Path, tmp_path: Path) -> None:
    text_file, path = tmp_path / "text", tmp_path / "pairs.tsv"
    text_file.write_text("ab\n" * 1_000 + "cd\n" * 10, encoding="utf-8")
    complete = tmp_path / "complete.tsv"
    assert run_cli("augment", reverse, text_file, "--output", complete).exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "seqloom.jobs.batch_translation.output_file.FileLines.complete", lambda lines: None
        )
        patch.setattr("seqloom.cli.inputs.skip_lines", lambda portions, first: [next(portions)])
        assert run_cli("augment", reverse, text_file, "--output", path).exit_code == 0
    assert OutputFile(path).partial.is_file()
    result = run_cli("augment", reverse, text_file, "--output", path)
    assert "continues after line 1,000 of the input" in result.stderr
    assert path.read_bytes() == complete.read_bytes()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--side", "source", "--tag", "<BT>"), 2, "--tag marks synthetic sources"),
        (("--tag", "<B T>"), 2, "a tag must not contain white space"),
        (("--max-ratio", "0.5"), 2, "--max-ratio"),
        (("--to", "fr"), 78, "fr"),
    ],
)
def test_wrong_options_are_errors(
    reverse: Path,
    text_file: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    result = run_cli("augment", reverse, text_file, "--output", tmp_path / "out", *options)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert not (tmp_path / "out").exists()


def test_missing_files_and_standard_input_are_errors(reverse: Path, tmp_path: Path) -> None:
    missing = run_cli("augment", reverse, tmp_path / "none", "--output", tmp_path / "out")
    assert (missing.exit_code, "none: no such file" in missing.stderr) == (66, True)
    stdin = run_cli("augment", reverse, "-", "--output", tmp_path / "out")
    assert (stdin.exit_code, "Write the text to a file" in stdin.stderr) == (78, True)
