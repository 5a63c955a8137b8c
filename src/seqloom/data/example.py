"""Example: one source and what it should become, in plain Python."""

from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "dev", "test"]


@dataclass(frozen=True, slots=True)
class Example:
    """One pair, as it stands in the data.

    source:     what is read; "" where there is nothing to read (plain lines). Where a tag says
                what is wanted it comes first: "<2de> A dog runs."
    target:     what is learned
    references: everything that counts as correct when scoring, the target first
    where:      file:line, for messages
    part:       the pair of languages, or other part of the split, that it is of; "" if there is
                only one
    tag:        the tag before the source; "" if there is none
    """

    source: str
    target: str
    references: tuple[str, ...]
    where: str
    part: str = ""
    tag: str = ""
