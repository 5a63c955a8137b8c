"""The output file of a translation, which a later command can continue.

While FILE is incomplete, its lines are in FILE.partial. After each portion of input lines,
FILE.progress.json records the number of finished input lines and the size of FILE.partial. A
process that is killed in the middle of a write therefore loses only the portion it was working on.
If the user repeats the command, it continues after the last recorded portion. The result is the
same, byte by byte, as without an interruption, because lines are batched only within a portion.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.core.locks import lock_or_fail
from seqloom.core.storage import publish, storage_errors, write_file
from seqloom.jobs.batch_translation.request import TranslationRequest, request_differences

RECORD_KEYS = ("lines", "bytes", "replaces", "request")
"""Keys of the progress file."""
START_AGAIN = "To start again, add --overwrite."


@dataclass(frozen=True)
class OutputFile:
    """The file that --output names, and the files that exist beside it until it is complete."""

    path: Path

    @property
    def partial(self) -> Path:
        """Path of FILE.partial, which contains the finished lines until the output is complete."""
        return self.path.with_name(f"{self.path.name}.partial")

    @property
    def record(self) -> Path:
        """Path of the progress file: JSON with the request and the number of finished lines."""
        return self.path.with_name(f"{self.path.name}.progress.json")

    @property
    def lock(self) -> Path:
        """Path of the lock file. The process that writes the output holds the lock."""
        return self.path.with_name(f"{self.path.name}.lock")

    def check(self, inputs: Sequence[Path], overwrite: bool) -> None:
        """Raise an error if the file cannot be written. Called before the run is loaded."""
        if self.path.is_dir():
            raise ConfigError(f"--output {self.path}: is a folder. Give the name of a file.")
        if not self.path.parent.is_dir():
            raise NotFoundError(
                f"--output {self.path}: the folder {self.path.parent} does not exist. Create it "
                f"with: mkdir -p {self.path.parent}"
            )
        written = {path.absolute() for path in (self.path, self.partial, self.record, self.lock)}
        if same := [path for path in inputs if path.absolute() in written]:
            raise ConfigError(
                f"--output {self.path}: {same[0]} is an input file. Choose another output file."
            )
        if self.path.exists() and not overwrite and not self._is_being_replaced():
            raise ConfigError(
                f"--output {self.path}: the file exists already. Add --overwrite to replace it, or "
                "choose another file."
            )

    def is_unfinished(self) -> bool:
        """Return True if an earlier command started the output and did not finish it.

        Returns False if FILE.partial is empty and there is no progress file, because there is
        nothing to continue.
        """
        return self.partial.exists() and (self.partial.stat().st_size > 0 or self.record.exists())

    def _is_being_replaced(self) -> bool:
        """Return True if a command with --overwrite was interrupted before it replaced the file."""
        record = self.read_record() if self.partial.exists() else None
        return record is not None and bool(record["replaces"])

    def read_record(self) -> dict[str, Any] | None:
        """Return the content of the progress file; None if it is missing.

        Raises a StorageError if the file is damaged.
        """
        try:
            record: dict[str, Any] = json.loads(self.record.read_bytes())
            if not isinstance(record, dict) or set(record) != set(RECORD_KEYS):
                raise ValueError(f"its keys are not {', '.join(RECORD_KEYS)}")
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StorageError(
                f"{self.record}: is damaged ({error}), so {self.partial} cannot be continued. "
                f"{START_AGAIN}"
            ) from error
        return record


class FileLines:
    """Writes the output to a file. After an interruption, a later command can continue the file.

    request: everything that determines the output. A later command can continue the file only if
             its request is the same. None if the input is standard input: the file then cannot be
             continued
    """

    def __init__(
        self,
        files: OutputFile,
        partial: BinaryIO,
        request: TranslationRequest | None,
        *,
        finished: int,
        replaces: bool,
    ) -> None:
        self.finished = finished
        self._files = files
        self._partial = partial
        self._size = partial.tell()
        self._request = request
        self._replaces = replaces

    def write(self, line: str) -> None:
        with storage_errors(self._files.partial):
            self._partial.write(f"{line}\n".encode())

    def end_portion(self, finished: int) -> None:
        # The lines must be on the disk before the record says so.
        with storage_errors(self._files.partial):
            self._partial.flush()
            os.fsync(self._partial.fileno())
        self._size = self._partial.tell()
        self.finished = finished
        self.save_record()

    def save_record(self) -> None:
        if self._request is not None:
            record = {
                "lines": self.finished,
                "bytes": self._size,
                "replaces": self._replaces,
                "request": self._request,
            }
            write_file(self._files.record, json.dumps(record, indent=1).encode())

    def discard_unfinished_portion(self) -> None:
        with suppress(
            OSError
        ):  # another error is being raised, for example because the disk is full
            self._partial.flush()
            self._partial.truncate(self._size)

    def complete(self) -> None:
        """Give the finished file its final name, and remove the progress file."""
        with storage_errors(self._files.path):
            self._partial.flush()
            publish(self._files.partial, self._files.path)
            self._files.record.unlink(missing_ok=True)


@contextmanager
def open_output_file(
    files: OutputFile, request: TranslationRequest | None, overwrite: bool
) -> Iterator[FileLines]:
    """Context manager that opens an output file and yields the object that writes its lines.

    The lines are first written to FILE.partial. At the end of the `with` block, FILE.partial is
    renamed to FILE. If the block raises an exception, FILE.partial stays, and a later command with
    the same request continues it.

    request:   everything that determines the output. None if the input is standard input: the
               output then cannot be continued
    overwrite: start from the first line, and replace an existing FILE at the end
    """
    problem = (
        f"--output {files.path}: another process is writing this file. Wait for it, or choose another "
        "file."
    )
    with lock_or_fail(files.lock, problem):
        is_unfinished = files.is_unfinished()
        with storage_errors(files.partial):
            descriptor = os.open(files.partial, os.O_RDWR | os.O_CREAT, 0o666)
        with os.fdopen(descriptor, "r+b") as partial:
            finished, size, replaces = 0, 0, overwrite
            if is_unfinished and not overwrite:
                record = _matching_record(files, request)
                finished, size, replaces = record["lines"], record["bytes"], record["replaces"]
                if os.fstat(descriptor).st_size < size:
                    raise StorageError(
                        f"{files.partial}: has fewer bytes than recorded in {files.record}, so it "
                        "was changed. Add --overwrite to start again."
                    )
            with storage_errors(files.partial):
                partial.truncate(size)
                partial.seek(size)
                if request is None:
                    files.record.unlink(missing_ok=True)
            lines = FileLines(files, partial, request, finished=finished, replaces=replaces)
            lines.save_record()
            try:
                yield lines
            except BaseException:
                lines.discard_unfinished_portion()
                raise
            lines.complete()


def _matching_record(files: OutputFile, request: TranslationRequest | None) -> dict[str, Any]:
    """Return the content of the progress file of an unfinished output.

    Raises ConfigError if this command cannot continue the output. There are three possible reasons:
    `request` is None, there is no progress file, or the progress file contains another request.
    Raises StorageError if the progress file is damaged.

    request: everything that determines the output. None if the input is standard input
    """
    if request is None:
        raise ConfigError(
            f"{files.partial}: an unfinished output exists, and a translation of standard input "
            f"cannot be continued. {START_AGAIN}"
        )
    record = files.read_record()
    if record is None:
        raise ConfigError(
            f"{files.partial}: an unfinished output exists, but {files.record} is missing, so the "
            f"output cannot be continued. {START_AGAIN}"
        )
    if different := request_differences(record["request"], json.loads(json.dumps(request))):
        raise ConfigError(
            f"{files.partial}: an unfinished output exists, but this command and the command that "
            f"started it differ in {' and '.join(different)}. To continue it, repeat the command "
            f"that started it. {START_AGAIN}"
        )
    return record
