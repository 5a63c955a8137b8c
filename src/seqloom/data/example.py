"""Example: one source and what it should become, in plain Python."""

from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "dev", "test"]


@dataclass(frozen=True, slots=True)
class Example:
    """One pair, as it stands in the data.

    source:     what is read; "" where there is nothing to read (plain lines)
    target:     what is learned
    references: everything that counts as correct when scoring, the target first
    where:      file:line, for messages
    """

    source: str
    target: str
    references: tuple[str, ...]
    where: str
