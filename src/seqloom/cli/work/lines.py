"""Lines from files or stdin, in portions, so that input of any length fits in memory."""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from seqloom.core.errors import NotFoundError
from seqloom.data.files import decoded_lines, read_lines

PORTION = 1_000
"""Lines that are sorted by length and decoded together."""
STDIN = Path("-")


def portions(files: Sequence[Path]) -> Iterator[list[str]]:
    """All lines of the files, or of stdin; a person at a terminal is answered line by line.

    That the files are there is looked up at once, not with the first portion.
    """
    files = files or [STDIN]
    check_files(
        [path for path in files if path != STDIN], "write it to stdin: echo '…' | seqloom …"
    )
    lines = (line for path in files for line in _lines(path))
    size = 1 if STDIN in files and sys.stdin.isatty() else PORTION
    return iter(lambda: list(islice(lines, size)), [])


def check_files(files: Sequence[Path], for_text: str = "") -> None:
    """All of them must be there before the first is read; for_text: what to do with a text."""
    missing = [path for path in files if not path.is_file()]
    if not missing:
        return
    told = [
        f"{path}: {'is a folder, not a file' if path.is_dir() else 'there is no such file'}"
        for path in missing
    ]
    if for_text and any(" " in str(path) for path in missing):
        told.append(f"If that is meant as text, {for_text}")
    raise NotFoundError("\n".join(told))


def _lines(path: Path) -> Iterator[str]:
    return decoded_lines(sys.stdin.buffer, "stdin") if path == STDIN else read_lines(path)
