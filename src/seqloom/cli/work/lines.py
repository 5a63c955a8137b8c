"""Lines from files or stdin, in portions, so that input of any length fits in memory."""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.files import MAX_BYTES, read_lines

PORTION = 1_000
"""Lines that are sorted by length and decoded together."""


def portions(files: Sequence[Path]) -> Iterator[list[str]]:
    """All lines of the files, or of stdin; a person at a terminal is answered line by line."""
    check_files(files)
    lines = (line for path in files for line in read_lines(path)) if files else stdin_lines()
    size = 1 if not files and sys.stdin.isatty() else PORTION
    while portion := list(islice(lines, size)):
        yield portion


def check_files(files: Sequence[Path]) -> None:
    """All of them must be there before the first is read."""
    missing = [f"{path}: there is no such file" for path in files if not path.is_file()]
    if missing:
        raise NotFoundError("\n".join(missing))


def stdin_lines() -> Iterator[str]:
    number = 0
    while raw := sys.stdin.buffer.readline(MAX_BYTES + 1):
        number += 1
        if len(raw) > MAX_BYTES:
            raise DataError(f"stdin:{number}: the line is longer than {MAX_BYTES:,} bytes")
        try:
            yield raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"stdin:{number}: byte {error.start + 1} of the line (0x{raw[error.start]:02x}) is "
                "not valid UTF-8; convert the text, for example with: iconv -f LATIN1 -t UTF-8"
            ) from error
