"""Standard output that may go away: a reader who has seen enough, a disk that is full."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from seqloom.core.errors import StorageError


class ReaderGoneError(Exception):
    """Whoever read standard output has closed it, as `head` does. No OSError: typer answers those."""


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        _discard_the_rest()
        raise ReaderGoneError from error
    except OSError as error:
        _discard_the_rest()
        raise StorageError(
            f"standard output: cannot be written: {error.strerror or error}; "
            "what came out so far is not whole: make room, or write elsewhere, and run it again"
        ) from error


def _discard_the_rest() -> None:
    """What is left in buffers goes nowhere; else it would fail again when Python ends."""
    try:
        place = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # no real file, so nothing will be flushed to it later
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, place)
    os.close(nowhere)


class _Output(io.TextIOWrapper):
    """Text to standard output, whose failures are told as its own."""

    def write(self, text: str, /) -> int:
        with _told():
            return super().write(text)

    def flush(self) -> None:
        with _told():
            super().flush()


@contextmanager
def watched_stdout() -> Iterator[None]:
    """Within, what cannot be written raises ReaderGoneError or StorageError, at the end as well."""
    before = sys.stdout
    # Under some test runners and embedders standard output is not a real text file.
    if not isinstance(before, io.TextIOWrapper):
        yield
        return
    before.flush()
    output = _Output(
        before.buffer,
        encoding="utf-8",
        newline="" if os.linesep == "\n" else None,
        line_buffering=before.line_buffering,
    )
    sys.stdout = output
    try:
        yield
    finally:
        try:
            output.flush()
        finally:
            sys.stdout = before
            output.detach()
