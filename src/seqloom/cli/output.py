"""Printing. Data goes to stdout, everything else to stderr."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TextIO

import typer

from seqloom.core.errors import SeqloomError


class Figure(Protocol):
    """A figure. The suffix of the file name selects the format."""

    def save(self, path: Path) -> None: ...


_quiet = False
"""True if the option --quiet is given."""


def use_utf8() -> None:
    """Set the encoding of stdout and stderr to UTF-8, independent of the locale."""
    for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
        # Some test runners and embedders replace a stream by an object that is not a text file.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors=errors)


def allows_colour(stream: TextIO) -> bool:
    """Return True if the stream is a terminal that may show colour.

    Colour is off if TERM is "dumb" or NO_COLOR is not empty (https://no-color.org).
    """
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def program_name() -> str:
    """Return the command that starts this program, for messages that recommend a command.

    This is usually `seqloom`. If the user started a script `seqloom` that is not the one on PATH,
    this is the path of that script.
    """
    called = sys.argv[0]
    on_path = shutil.which("seqloom")
    is_script = Path(called).name == "seqloom" and Path(called).exists()
    if is_script and (on_path is None or not Path(on_path).samefile(called)):
        return shlex.quote(called)
    return "seqloom"


def print_line(line: str) -> None:
    """Write one line of data to stdout."""
    sys.stdout.write(f"{line}\n")


def format_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON, in one line unless `indent` is given."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def print_json(value: Any, indent: int | None = None) -> None:
    """Write a value as JSON to stdout, in one line unless `indent` is given."""
    print_line(format_json(value, indent))


def write_json(path: Path, value: Any, indent: int | None = None) -> None:
    """Write a value as JSON to a file."""
    from seqloom.core.storage import write_file

    write_file(path, format_json(value, indent).encode())


def show_result(
    numbers: Any,
    print_drawing: Callable[[], None],
    figure: Callable[[], Figure],
    *,
    out: Path | None,
    json: bool,
    title: str,
) -> None:
    """Write a result to the file `out` if it is given, then print it.

    numbers:       the result as JSON
    print_drawing: prints the result for a terminal
    figure:        returns a figure of the result
    title:         what the message about the written file calls its content
    """
    if out is not None:
        if out.suffix.lower() == ".json":
            write_json(out, numbers, indent=1)
        else:
            figure().save(out)
        print_message(f"{out}: {title}")
    if json:
        print_json(numbers)
    else:
        print_drawing()


def flush_output() -> None:
    """Flush stdout, so that its reader receives the data written so far."""
    sys.stdout.flush()


def set_quiet(value: bool) -> None:
    """Switch messages and progress displays off or on. Warnings and errors are always printed."""
    global _quiet
    _quiet = value


def is_quiet() -> bool:
    """True if the option --quiet is given."""
    return _quiet


def shows_progress() -> bool:
    """True if a progress display may be drawn: stderr is a terminal, and --quiet is not given."""
    return not _quiet and sys.stderr.isatty()


def print_message(text: str = "") -> None:
    """Write a message for the user to stderr, unless --quiet is given."""
    if not _quiet:
        _write_to_stderr(text)


def print_warning(text: str) -> None:
    _write_to_stderr(f"{_prefix('warning:', typer.colors.YELLOW)} {text}")


def print_warnings(texts: Iterable[str]) -> None:
    for text in texts:
        print_warning(text)


def print_error(error: SeqloomError) -> None:
    _write_to_stderr(f"{_prefix('error:', typer.colors.RED)} {error}")


def _write_to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _prefix(word: str, colour: str) -> str:
    return typer.style(word, fg=colour, bold=True) if allows_colour(sys.stderr) else word


def styled(text: str, **style: Any) -> str:
    """Return the text with a typer style, or unchanged if stdout does not allow colour."""
    return typer.style(text, **style) if text and allows_colour(sys.stdout) else text
