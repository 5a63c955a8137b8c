"""Translated files that clients have not downloaded yet. All workers of a server share them."""

import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

from seqloom.core.locks import wait_for_lock
from seqloom.serving.api.errors import busy_error

SHARED_MEMORY = "/dev/shm"
LOCK = ".lock"
TOKEN_BYTES = 24
TOKEN = re.compile(r"[\w-]{32}", re.ASCII)
"""A token of TOKEN_BYTES bytes. Other strings could be paths to files outside of the folder."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder that only this user can read, and remove it at the end of the block.

    The folder is in memory if the system has a folder for this.
    """
    memory = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="seqloom-", dir=memory) as folder:
        yield Path(folder)


@dataclass(frozen=True)
class TranslatedFile:
    name: str
    content: bytes


@dataclass(frozen=True)
class TranslatedFiles:
    """Stores translated files. Each has a random token, with which it can be downloaded once.

    Several processes can use the same folder.

    folder:  private folder, which contains a file with the name and the content for each token
    maximum: maximum number of files
    seconds: time in seconds for which a file is available
    """

    folder: Path
    maximum: int
    seconds: float

    def add(self, name: str, content: bytes) -> str:
        """Store a file and return the token for its download.

        Raises a 503 error if there are too many files.
        """
        token = token_urlsafe(TOKEN_BYTES)
        # No other process can add a file between the count and the new file.
        with wait_for_lock(self.folder / LOCK):
            if self._remove_expired() >= self.maximum:
                raise busy_error(
                    f"{self.maximum} translated files wait for their download; try again later"
                )
            path = self.folder / token
            try:
                # json.dumps writes no line breaks.
                path.write_bytes(json.dumps(name).encode() + b"\n" + content)
            except OSError:  # for example because the disk is full
                path.unlink(missing_ok=True)
                raise
        return token

    def get(self, token: str) -> TranslatedFile | None:
        """Return a file; None if there is no such file, or if it has expired."""
        if not TOKEN.fullmatch(token):
            return None
        try:
            with open(self.folder / token, "rb") as file:
                is_expired = self._is_expired(os.fstat(file.fileno()))
                name, content = json.loads(file.readline()), file.read()
        except FileNotFoundError:
            return None
        return None if is_expired else TranslatedFile(name, content)

    def take(self, token: str) -> TranslatedFile | None:
        """Remove a file and return it; None if there is no such file, or if it has expired."""
        file = self.get(token)
        if file is None:
            return None
        try:
            (self.folder / token).unlink()  # fails if another process has taken the file
        except FileNotFoundError:
            return None
        return file

    def _remove_expired(self) -> int:
        """Remove the files that have expired. Return the number of the others."""
        count = 0
        for entry in self.folder.iterdir():
            try:
                if entry.name == LOCK:
                    continue
                if self._is_expired(entry.stat()):
                    entry.unlink()
                else:
                    count += 1
            except FileNotFoundError:
                pass  # downloaded since the folder was listed
        return count

    def _is_expired(self, status: os.stat_result) -> bool:
        return status.st_mtime + self.seconds <= time.time()
