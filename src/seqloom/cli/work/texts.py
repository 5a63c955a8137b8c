"""Texts that were typed as arguments."""

from collections.abc import Sequence

from seqloom.core.errors import DataError


def checked(texts: Sequence[str]) -> Sequence[str]:
    """What a shell hands over need not be text."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"text {text!a}: is not valid UTF-8") from error
    return texts
