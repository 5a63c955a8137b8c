"""Wraps stdout, so that failed writes raise StdoutClosedError or StorageError."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from seqloom.core.errors import StorageError


class StdoutClosedError(Exception):
    """Raised if the program that reads standard output has closed the pipe, as `head` does.

    This class is not a subclass of OSError, because typer handles OSError itself.
    """


@contextmanager
def checked_stdout() -> Iterator[None]:
    """Context manager in which failed writes to sys.stdout raise StdoutClosedError or StorageError.

    Flushes stdout at the end of the block, so that the last write is also checked.
    """
    original = sys.stdout
    # Some test runners and embedders replace stdout by an object that is not a text file.
    if not isinstance(original, io.TextIOWrapper):
        yield
        return
    original.flush()
    checked = _CheckedStream(
        original.buffer,
        encoding="utf-8",
        newline="" if os.linesep == "\n" else None,
        line_buffering=original.line_buffering,
    )
    sys.stdout = checked
    try:
        yield
    finally:
        try:
            checked.flush()
        finally:
            sys.stdout = original
            checked.detach()


class _CheckedStream(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        with _translated_errors():
            return super().write(text)

    def flush(self) -> None:
        with _translated_errors():
            super().flush()


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        _discard_buffered_output()
        raise StdoutClosedError from error
    except OSError as error:
        _discard_buffered_output()
        raise StorageError(
            f"standard output: writing failed: {error.strerror or error}. The output is "
            "incomplete. Free some space or write to another file, then run the command again."
        ) from error


def _discard_buffered_output() -> None:
    """Redirect stdout to os.devnull, so that flushing stdout at exit does not fail again."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # stdout is not a real file, so there is nothing to redirect
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, descriptor)
    os.close(devnull)
