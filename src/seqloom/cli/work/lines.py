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
    """All lines of the files, or of stdin; a person at a terminal is answered line by line."""
    files = files or [STDIN]
    check_files([path for path in files if path != STDIN])
    lines = (line for path in files for line in _lines(path))
    size = 1 if STDIN in files and sys.stdin.isatty() else PORTION
    while portion := list(islice(lines, size)):
        yield portion


def check_files(files: Sequence[Path]) -> None:
    """All of them must be there before the first is read."""
    missing = [f"{path}: there is no such file" for path in files if not path.is_file()]
    if missing:
        raise NotFoundError("\n".join(missing))


def _lines(path: Path) -> Iterator[str]:
    return decoded_lines(sys.stdin.buffer, "stdin") if path == STDIN else read_lines(path)
