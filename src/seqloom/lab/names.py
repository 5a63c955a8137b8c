"""The names of the claims, known before anything heavy is imported."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from seqloom.core.errors import NotFoundError

_FOLDER = Path(__file__).parent / "claims"
ALL = "all"


def claim_names() -> list[str]:
    """Every file in `claims` is one; in alphabetical order."""
    files = (path.stem for path in _FOLDER.glob("*.py") if path.stem != "__init__")
    return sorted(stem.replace("_", "-") for stem in files)


def chosen_claims(names: Sequence[str]) -> list[str]:
    """The claims that are meant, each once; all names that are none's are refused at once."""
    known = claim_names()
    unknown = [name for name in dict.fromkeys(names) if name not in (*known, ALL)]
    if unknown:
        raise NotFoundError(
            f"{'; '.join(_unknown(name, known) for name in unknown)}; `seqloom lab` lists them"
        )
    return known if ALL in names else list(dict.fromkeys(names))


def _unknown(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, [*known, ALL], 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"there is no claim '{name}'{hint}"
