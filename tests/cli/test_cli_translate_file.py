"""seqloom translate-file, on a small run."""

from pathlib import Path

import pytest

from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow


def test_document_has_the_translations_of_its_texts(reverse: Path, tmp_path: Path) -> None:
    file, output = tmp_path / "page.html", tmp_path / "out.html"
    file.write_bytes(b'<p class="x">abc</p>\r\n<code>abc</code> dcba\r\n')
    lines = run_cli("translate", reverse, stdin=b"abc\ndcba\n").stdout.splitlines()
    expected = f'<p class="x">{lines[0]}</p>\r\n<code>abc</code> {lines[1]}\r\n'
    assert run_cli("translate-file", reverse, file).stdout == expected
    result = run_cli("translate-file", reverse, file, "--output", output)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert output.read_bytes() == expected.encode()
    again = run_cli("translate-file", reverse, file, "--output", output)
    assert again.exit_code == ConfigError.exit_code
    assert "exists already; replace it with --overwrite" in again.error
    assert run_cli("translate-file", reverse, file, "--output", output, "--overwrite").stderr == ""


def test_document_without_text_is_copied(reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n --- \n")
    assert run_cli("translate-file", reverse, tmp_path / "a.txt").stdout == "\n --- \n"


def test_truncated_translations_are_reported(reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abcd\n")
    settings = set_options("decoding.kind=greedy", "decoding.max_length=1")
    result = run_cli("translate-file", reverse, tmp_path / "a.txt", *settings)
    assert "1 of 1 translations reached the length limit, the first of 'abcd'" in result.error


def test_characters_that_srt_cannot_contain_are_removed_with_a_warning(
    reverse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nabc\n")
    for text, kept, is_reported in (("- a <b> c", "a b c", True), ("a - c", "a - c", False)):
        prediction = Prediction(text, 0.0)
        monkeypatch.setattr(Run, "predict", lambda *_, result=prediction, **__: [[result]])
        result = run_cli("translate-file", reverse, tmp_path / "a.srt")
        assert kept in result.stdout
        assert ("1 of 1 translations contained <, >" in result.error) == is_reported


def test_unknown_characters_are_reported(reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc\nabЖ\n", encoding="utf-8")
    result = run_cli("translate-file", reverse, tmp_path / "a.txt")
    assert "1 of 2 texts contains characters that the vocabulary does not know" in result.error
    assert "Ж" in result.error


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("a.srt", b"x\n", DataError.exit_code, "a.srt:1: expected the number of a cue"),
        ("a.pdf", b"x\n", ConfigError.exit_code, "the format is not known from the name"),
        ("a.txt", None, NotFoundError.exit_code, "cannot be read: No such file"),
    ],
)
def test_unusable_documents_are_errors(
    reverse: Path, tmp_path: Path, name: str, content: bytes | None, code: int, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = run_cli("translate-file", reverse, tmp_path / name)
    assert result.exit_code == code
    assert message in result.error
