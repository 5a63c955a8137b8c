"""Keys: who may ask. Kept as SHA-256, never as they are."""

import hashlib
import hmac
import re
from dataclasses import dataclass
from pathlib import Path

from seqloom.core.errors import DataError, NotFoundError
from seqloom.serving.problems import Problem

HOW = 'printf %s "$KEY" | sha256sum >> FILE'


@dataclass(frozen=True)
class Keys:
    """The digests of all keys; none: everybody may ask."""

    digests: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "Keys":
        """A digest a line, as `sha256sum` writes it; what stands behind it names its owner."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise NotFoundError(f"{path}: the keys cannot be read ({error})") from error
        kept = [
            (number, line.split()) for number, line in enumerate(lines, start=1) if line.strip()
        ]
        wrong = [n for n, words in kept if not re.fullmatch("[0-9a-f]{64}", words[0])]
        if wrong:
            raise DataError(
                f"{path}:{wrong[0]}: is no SHA-256 in hexadecimal digits; keys are kept as their "
                f"digests, each added with: {HOW}"
            )
        if not kept:
            raise DataError(f"{path}: holds no key, so nobody could ask; add one with: {HOW}")
        return cls(tuple(words[0] for _, words in kept))

    def knows(self, key: str) -> bool:
        """In the same time whichever key it is, or none."""
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return sum(hmac.compare_digest(digest, known) for known in self.digests) > 0

    def check(self, key: str | None) -> None:
        """Refuse whoever has none, or a wrong one."""
        if not self.digests:
            return
        if not key:
            raise Problem(
                401,
                "no-key",
                "a key is needed here; send it as 'Authorization: Bearer KEY', or as api_key to "
                "the routes of LibreTranslate",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not self.knows(key):
            raise Problem(403, "wrong-key", "this key is not known here; check its spelling")


def bearer(header: str | None) -> str | None:
    """The key of an Authorization header."""
    scheme, _, key = (header or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None
