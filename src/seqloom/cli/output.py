"""Where words go: data to stdout, everything else to stderr."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, TextIO

import typer

from seqloom.core.errors import SeqloomError


def write_in_utf8() -> None:
    """Text in and out is UTF-8, whatever the locale says."""
    for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
        # Under some test runners and embedders a stream is not a real text file.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors=errors)


def colour_allowed(stream: TextIO) -> bool:
    """https://no-color.org: any NO_COLOR that is not empty forbids it."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def program() -> str:
    """How to call seqloom again: by its name if that finds it, else as it was called now."""
    called = sys.argv[0]
    known = shutil.which("seqloom")
    here = Path(called).name == "seqloom" and Path(called).exists()
    if here and (known is None or not Path(known).samefile(called)):
        return shlex.quote(called)
    return "seqloom"


def tell(text: str = "") -> None:
    """Say something to the person at the keyboard."""
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    tell(f"{_marked('warning:', typer.colors.YELLOW)} {text}")


def complain(error: SeqloomError) -> None:
    tell(f"{_marked('error:', typer.colors.RED)} {error}")


def _marked(word: str, colour: str) -> str:
    return typer.style(word, fg=colour, bold=True) if colour_allowed(sys.stderr) else word


def styled(text: str, **style: Any) -> str:
    """Text for stdout, in colour where that is wanted."""
    return typer.style(text, **style) if text and colour_allowed(sys.stdout) else text


def put(line: str) -> None:
    """One line of data."""
    sys.stdout.write(f"{line}\n")


def put_now() -> None:
    """Let whoever reads stdout have what was written so far."""
    sys.stdout.flush()
