"""The progress bar: only in a terminal, on stderr, with done, total, rate and time left."""

import gzip
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.cli.process.progress import (
    count_lines,
    format_status,
    portion_progress,
    progress_bar,
)
from seqloom.cli.tables import MAX_PERPLEXITY, format_score
from seqloom.data.readers.text_files import count_file_lines, read_lines
from support.cli_runner import run_cli


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0, None, None, None), ""),
        ((120, None, None, None), "120 lines"),
        ((1200, None, 45.12, None), "1,200 lines  45.1 lines/s"),
        ((120, 1000, 45.12, 19.4), "120/1,000 lines  45.1 lines/s  0:19 left"),
        ((1000, 5000, 1234.5, 3725.0), "1,000/5,000 lines  1,234 lines/s  1:02:05 left"),
        ((1000, 1000, 50.0, 0.0), "1,000/1,000 lines  50.0 lines/s"),
    ],
)
def test_status_has_the_numbers_that_are_known(
    numbers: tuple[int, int | None, float | None, float | None], expected: str
) -> None:
    done, total, rate, left = numbers
    assert format_status(done, total, "lines", rate, left) == expected


def test_nothing_is_shown_unless_stderr_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("translating", "lines") as show:
        show(3, 10)
    assert isinstance(sys.stderr, io.StringIO)
    assert sys.stderr.getvalue() == ""


def test_bar_shows_the_progress_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    stdout = sys.stdout
    with progress_bar("translating", "lines") as show:
        assert sys.stdout is stdout  # output is not redirected to stderr
        show(3, 10)
        portion_progress(show, 3, 10)(4, 5)
        show(7, 10, "reading dev")
    assert "reading dev" in terminal.getvalue()
    assert "7/10 lines" in terminal.getvalue()


def test_command_that_prints_to_the_terminal_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", Terminal())
    with progress_bar("translating", "lines", prints=True) as show:
        show(3, 10)
    assert terminal.getvalue() == ""


@given(st.lists(st.text("ab\r", max_size=3)), st.sampled_from(["", "\n", "last"]))
def test_lines_are_counted_as_they_are_read(lines: list[str], end: str) -> None:
    import tempfile

    content = ("".join(f"{line}\n" for line in lines) + end).encode()
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("plain", content), ("packed.gz", gzip.compress(content))):
            path = Path(folder) / name
            path.write_bytes(data)
            assert count_file_lines(path) == len(list(read_lines(path)))


def test_standard_input_has_no_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("a\nb\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert count_lines([tmp_path / "a", tmp_path / "a"]) == 4
    assert count_lines([tmp_path / "a", Path("-")]) is None
    assert count_lines(None) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["translate", "RUN", "input"], "4/4 lines"),
        (["translate", "RUN"], "4 lines"),
        (["translate", "RUN", "input", "--output", "out"], "4/4 lines"),
        (["score", "RUN", "input", "input"], "4/4 lines"),
        (["align", "RUN", "input", "input"], "4/4 lines"),
        (["evaluate", "RUN"], "20/20 sentences"),
        (["doctor", "RECIPE"], "reading test"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_show_progress_on_stderr_and_keep_stdout_clean(
    command: list[str],
    status: str,
    recipes: Path,
    reverse: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "input").write_text("ab\ncd\nab\ncd\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    names = {"RUN": str(reverse), "RECIPE": str(recipes / "reverse.toml")}
    arguments = [names.get(argument, argument) for argument in command]
    plain = run_cli(*arguments, stdin=b"ab\ncd\nab\ncd\n")
    (tmp_path / "out").unlink(missing_ok=True)
    assert plain.exit_code == 0, plain.stderr
    assert "\x1b" not in plain.stderr
    assert status not in plain.stderr
    shown = run_cli(*arguments, stdin=b"ab\ncd\nab\ncd\n", terminal=True)
    assert status in shown.stderr
    assert shown.stdout == plain.stdout
    show_cursor, hide_cursor = "\x1b[?25h", "\x1b[?25l"
    assert shown.stderr.rindex(show_cursor) > shown.stderr.rindex(hide_cursor)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("BLEU", 8.445e-05, "< 0.01"),
        ("BLEU", 0.0, "0.00"),
        ("BLEU", 34.256, "34.26"),
        ("exact match", 50.0, "50.00%"),
        ("exact-match", 0.001, "< 0.01%"),
        ("word error rate", 12.345, "12.35%"),
        ("perplexity", 1.2345, "1.23"),
        ("perplexity", 78.82, "78.8"),
        ("perplexity", 12345.6, "12,346"),
        ("perplexity per word", 2.739e8, "> 1,000,000"),
        ("nats per token", 4.3671, "4.367"),
        ("MSE", 0.00001, "< 0.001"),
        ("MSE", float("nan"), "nan"),
    ],
)
def test_scores_are_readable(name: str, value: float, expected: str) -> None:
    assert format_score(name, value) == expected


@given(
    st.sampled_from(["BLEU", "exact match", "perplexity", "nats per token"]),
    st.floats(0, MAX_PERPLEXITY),
)
def test_formatted_scores_are_close_to_the_value(name: str, value: float) -> None:
    text = format_score(name, value)
    assert "e" not in text
    shown = float(text.strip("<>% ").replace(",", ""))
    assert shown == pytest.approx(value, rel=0.01, abs=0.01)
