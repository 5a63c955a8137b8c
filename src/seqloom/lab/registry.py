"""Finds claims by name. A claim is a statement about models that an experiment tests.

Every module in `lab/claims` defines one claim. This module does not import torch, and only
`find_claim` imports a claim. The command line can therefore check names quickly.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.core.errors import NotFoundError

if TYPE_CHECKING:
    from seqloom.lab.claim import Claim

_CLAIMS_FOLDER = Path(__file__).parent / "claims"
ALL = "all"


def claim_names() -> list[str]:
    """Names of all claims, in alphabetical order."""
    stems = (path.stem for path in _CLAIMS_FOLDER.glob("*.py") if path.stem != "__init__")
    return sorted(stem.replace("_", "-") for stem in stems)


def select_claims(names: Sequence[str]) -> list[str]:
    """Return the requested names without duplicates. The name "all" selects every claim.

    Raises NotFoundError if a name is unknown. The message lists all unknown names.
    """
    available = claim_names()
    unknown = [name for name in dict.fromkeys(names) if name not in (*available, ALL)]
    if unknown:
        problems = "; ".join(_describe_unknown(name, available) for name in unknown)
        raise NotFoundError(f"{problems}; `seqloom lab` lists all claims")
    return available if ALL in names else list(dict.fromkeys(names))


def _describe_unknown(name: str, available: Sequence[str]) -> str:
    closest = get_close_matches(name, [*available, ALL], 1)
    hint = f" (did you mean {closest[0]}?)" if closest else ""
    return f"there is no claim '{name}'{hint}"


def find_claim(name: str) -> "Claim[Any]":
    """Import the module that defines this claim, and return the claim."""
    [selected] = select_claims([name])
    module = import_module(f"seqloom.lab.claims.{selected.replace('-', '_')}")
    claim: Claim[Any] = module.CLAIM
    assert claim.name == selected, f"{module.__file__} defines the claim {claim.name}"
    return claim
