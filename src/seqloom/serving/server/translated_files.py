"""Translated files that clients have not downloaded yet. They are stored only in memory."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from seqloom.serving.api.errors import busy_error


@dataclass(frozen=True)
class TranslatedFile:
    """A translated file.

    expires: time at which the file becomes unavailable, in seconds of a monotonic clock
    """

    name: str
    content: bytes
    expires: float


@dataclass(frozen=True)
class TranslatedFiles:
    """Stores translated files. Each has a random token, with which it can be downloaded once.

    maximum: maximum number of files
    seconds: time in seconds for which a file is available
    clock:   returns the time in seconds
    """

    maximum: int
    seconds: float
    clock: Callable[[], float] = time.monotonic
    _files: dict[str, TranslatedFile] = field(default_factory=dict)

    def add(self, name: str, content: bytes) -> str:
        """Store a file and return the token for its download.

        Raises a 503 error if there are too many files.
        """
        now = self.clock()
        for token in [token for token, file in self._files.items() if file.expires <= now]:
            del self._files[token]
        if len(self._files) >= self.maximum:
            raise busy_error(
                f"{self.maximum} translated files wait for their download; try again later"
            )
        token = secrets.token_urlsafe(24)
        self._files[token] = TranslatedFile(name, content, now + self.seconds)
        return token

    def get(self, token: str) -> TranslatedFile | None:
        """Return a file; None if there is no such file, or if it has expired."""
        file = self._files.get(token)
        return file if file is not None and file.expires > self.clock() else None

    def take(self, token: str) -> TranslatedFile | None:
        """Remove a file and return it; None if there is no such file, or if it has expired."""
        file = self.get(token)
        self._files.pop(token, None)
        return file
