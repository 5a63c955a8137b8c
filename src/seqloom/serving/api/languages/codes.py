"""Matches a client's language code, such as en-US, with the languages that the server offers."""

from collections.abc import Iterable


def match_language(code: str, served: Iterable[str]) -> str | None:
    """Return the code in `served` that means the same language as `code`.

    Returns None if no code or several codes in `served` match.

    Upper and lower case are equal, and so are "-" and "_". A code with a region matches the code
    without it: en-US matches en, and pt matches pt-BR.
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
    """Return a language code in lower case and with hyphens: pt_BR -> pt-br"""
    return code.strip().lower().replace("_", "-")


def _primary(code: str) -> str:
    """Return a language code without its region, in lower case: pt_BR -> pt"""
    return _normalise(code).partition("-")[0]
