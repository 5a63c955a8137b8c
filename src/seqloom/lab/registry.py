"""The claims by their names."""

from importlib import import_module
from typing import Any

from seqloom.lab.claim import Claim
from seqloom.lab.names import chosen_claims


def find_claim(name: str) -> Claim[Any]:
    """The claim of this name: CLAIM in its file."""
    [known] = chosen_claims([name])
    module = import_module(f"seqloom.lab.claims.{known.replace('-', '_')}")
    claim: Claim[Any] = module.CLAIM
    assert claim.name == known, f"{module.__file__} holds the claim {claim.name}"
    return claim
