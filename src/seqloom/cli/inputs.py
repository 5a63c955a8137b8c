"""Input texts: from files, from stdin, or from the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.readers.example_files import check_files, describe_missing
from seqloom.jobs.batch_translation import portions

STDIN = Path("-")


def check_text_files(files: Sequence[Path] | None) -> None:
    """Raise a NotFoundError that lists every path that is neither a file nor "-", for stdin."""
    missing = [path for path in files or () if path != STDIN and not path.is_file()]
    if any(" " in str(path) for path in missing):
        raise NotFoundError(
            f"{describe_missing(missing)}\n"
            "To pass text, write it to standard input: echo '…' | seqloom …"
        )
    check_files(missing)


def read_portions(files: Sequence[Path] | None, device_type: str = "cpu") -> Iterator[list[str]]:
    """Return an iterator over portions of the lines of the files: lists of lines.

    The path "-" stands for stdin. If there are no files, reads stdin. If stdin is read and is a
    terminal, each list has one line, so that every line is processed as soon as it is entered.
    Raises NotFoundError if a file is missing, before anything is read.

    device_type: type of the device that decodes a portion. A GPU gets larger portions
    """
    check_text_files(files)
    paths = files or [STDIN]
    lines = (line for path in paths for line in _read_lines(path))
    is_terminal = STDIN in paths and sys.stdin.isatty()
    size = 1 if is_terminal else portions.portion_lines(device_type)
    return iter(lambda: list(islice(lines, size)), [])


def skip_lines(portions: Iterator[list[str]], count: int) -> Iterator[list[str]]:
    """Skip the first `count` lines and return an iterator over the remaining portions.

    portions: iterator over lists of lines
    count:    number of lines to skip. Only whole lists can be skipped, so this must be the total
              number of lines of the first few lists
    """
    while count > 0:
        count -= len(next(portions))
    return portions


def _read_lines(path: Path) -> Iterator[str]:
    from seqloom.data.readers.text_files import decode_lines, read_lines

    return decode_lines(sys.stdin.buffer, "stdin") if path == STDIN else read_lines(path)


def check_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts unchanged. Raise DataError if one of them is not valid UTF-8."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"text {text!a}: is not valid UTF-8; convert it to UTF-8") from error
    return texts
