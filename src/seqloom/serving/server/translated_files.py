"""Translated files that clients have not downloaded yet. All workers of a server share them."""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

from filelock import FileLock

from seqloom.core.locks import wait_for_lock
from seqloom.core.storage import DISK_FULL
from seqloom.serving.errors import busy_error

SHARED_MEMORY = "/dev/shm"
FOLDER_PREFIX = "seqloom-files-"
LOCK = ".lock"
OWNER_LOCK = ".lock-owner"
"""The server holds this lock as long as it runs."""
MIN_AGE = 60
"""A younger folder is not removed: its server may not have the lock yet. In seconds."""
TOKEN_BYTES = 24
TOKEN = re.compile(r"[\w-]{32}", re.ASCII)
"""A token of TOKEN_BYTES bytes. Other strings could be paths to files outside of the folder."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder that only this user can read, and remove it at the end of the block.

    The folder is in memory if the system has a folder for this. First remove the folders of servers
    that were killed.
    """
    has_memory = os.access(SHARED_MEMORY, os.W_OK | os.X_OK)
    parent = Path(SHARED_MEMORY if has_memory else tempfile.gettempdir())
    for old in parent.glob(f"{FOLDER_PREFIX}*"):
        _remove_if_abandoned(old)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=parent))
    try:
        with FileLock(folder / OWNER_LOCK):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_abandoned(folder: Path) -> None:
    """Remove the folder of a server of this user that does not run any more."""
    with suppress(OSError):  # the folder of another user, or removed meanwhile
        if folder.stat().st_mtime + MIN_AGE < time.time():
            with FileLock(folder / OWNER_LOCK, timeout=0):
                shutil.rmtree(folder, ignore_errors=True)


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
        self.folder.mkdir(mode=0o700, exist_ok=True)  # the system may have removed it
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
            except OSError as error:
                path.unlink(missing_ok=True)
                if error.errno not in DISK_FULL:
                    raise
                raise busy_error(
                    "there is no space for the translated file; try again later"
                ) from error
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
                if entry.name in (LOCK, OWNER_LOCK):
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
