"""Finds the served language that a client means by a language code."""

from collections.abc import Iterable


def match_language(code: str, served: Iterable[str]) -> str | None:
    """Return the served code of a language, or None if it is not served or not unique.

    The letter case and the separator do not matter. A code with a region matches the language
    without it, and the reverse: en-US matches en, and pt matches pt-BR if no other Portuguese is
    served.
    """
    codes = sorted(set(served))
    if code in codes:
        return code
    wanted = _normalise(code)
    same = [other for other in codes if _normalise(other) == wanted]
    if not same:
        language = _primary(wanted)
        same = [
            other
            for other in codes
            if _primary(other) == language and (_normalise(other) == language or wanted == language)
        ]
    return same[0] if len(same) == 1 else None


def _normalise(code: str) -> str:
    """pt_BR -> pt-br"""
    return code.strip().lower().replace("_", "-")


def _primary(code: str) -> str:
    """pt_BR -> pt"""
    return _normalise(code).partition("-")[0]
