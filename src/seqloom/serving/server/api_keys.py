"""API keys. The server stores only the SHA-256 digests of the keys."""

import hashlib
import hmac
import re
from dataclasses import dataclass
from pathlib import Path

from seqloom.core.errors import DataError, NotFoundError
from seqloom.serving.errors import ApiError

ADD_KEY_COMMAND = 'printf %s "$KEY" | sha256sum >> FILE'

EMPTY_DIGEST = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class ApiKeys:
    """SHA-256 digests of the accepted keys. If there are none, requests need no key."""

    digests: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "ApiKeys":
        """Read one digest per line, as `sha256sum` writes it. Text after the digest is a comment."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise NotFoundError(f"{path}: cannot read the API keys ({error})") from error
        entries = [
            (number, line.split()) for number, line in enumerate(lines, start=1) if line.strip()
        ]
        invalid = [n for n, words in entries if not re.fullmatch("[0-9a-f]{64}", words[0])]
        if invalid:
            raise DataError(
                f"{path}:{invalid[0]}: not a SHA-256 digest in hexadecimal. The file must "
                f"contain digests of keys, not the keys; add a digest with: {ADD_KEY_COMMAND}"
            )
        if any(words[0] == EMPTY_DIGEST for _, words in entries):
            raise DataError(
                f"{path}: one line is the digest of an empty key, probably because the shell variable "
                f"KEY was not set. Remove this line, set KEY, and add the key with: {ADD_KEY_COMMAND}"
            )
        if not entries:
            raise DataError(f"{path}: contains no API key; add one with: {ADD_KEY_COMMAND}")
        return cls(tuple(words[0] for _, words in entries))

    def contains(self, key: str) -> bool:
        """True if the key is accepted. Takes the same time for every key."""
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return sum(hmac.compare_digest(digest, accepted) for accepted in self.digests) > 0

    def check(self, key: str | None) -> None:
        """Raise a 401 error if the key is missing, a 403 error if it is wrong."""
        if not self.digests:
            return
        if not key:
            raise ApiError(
                401,
                "no-key",
                "an API key is required; send it as 'Authorization: Bearer KEY', or as the field "
                "api_key on the LibreTranslate routes",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not self.contains(key):
            raise ApiError(403, "wrong-key", "the API key is wrong; check its spelling")


def bearer_token(header: str | None) -> str | None:
    """Return the key in an Authorization header, or None if the header contains no key."""
    scheme, _, key = (header or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None
