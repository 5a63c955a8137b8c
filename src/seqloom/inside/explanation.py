"""Explanation: one step of a decoder, all its values in the order in which they come about."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Part:
    """One value of a step.

    chapter: what it belongs to, "where it looks" say
    name:    "query"
    formula: how it comes about in this model, "q₃ = Wq s₂ + bq"
    values:  () a number, (D,) a vector, (N,) a number for each of N words, (N, D) a vector for each
    labels:  the N words; empty if it is one number or one vector
    note:    what the formula does not say; may be empty
    """

    chapter: str
    name: str
    formula: str
    values: Tensor
    labels: tuple[str, ...] = ()
    note: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python."""
        return {
            **{key: getattr(self, key) for key in ("chapter", "name", "formula", "note")},
            "shape": list(self.shape),
            "labels": list(self.labels),
            "values": plain(self.values),
        }


def plain(values: Tensor) -> Any:
    """Nested lists; None where JSON has no number: a token that can never come has a score of -inf."""

    def finite(value: Any) -> Any:
        if isinstance(value, list):
            return [finite(each) for each in value]
        return value if math.isfinite(value) else None

    return finite(values.tolist())


@dataclass(frozen=True)
class Token:
    """A token, and how probable it is at this step; None if that was not asked."""

    piece: str
    id: int
    probability: float | None = None


@dataclass(frozen=True)
class Explanation:
    """One step, laid open.

    source:   the pieces that were read; empty if there was nothing to read
    output:   the pieces of the whole output
    step:     which of them this step puts out, from 1
    previous: the token that goes in
    answer:   the token of the output at this step
    best:     the most probable tokens, the best first
    layer:    whose look is laid open, from 1; None without attention
    head:     the same
    parts:    every value, in order
    """

    source: tuple[str, ...]
    output: tuple[str, ...]
    step: int
    previous: Token | None
    answer: Token | None
    best: tuple[Token, ...]
    layer: int | None
    head: int | None
    parts: tuple[Part, ...]

    def part(self, name: str, chapter: str | None = None) -> Part:
        """The first part of this name."""
        return next(
            one for one in self.parts if one.name == name and chapter in (None, one.chapter)
        )

    def to_json(self) -> dict[str, Any]:
        """All numbers, in plain Python."""
        return {
            "source": list(self.source),
            "output": list(self.output),
            "step": self.step,
            "previous": None if self.previous is None else asdict(self.previous),
            "answer": None if self.answer is None else asdict(self.answer),
            "best": [asdict(token) for token in self.best],
            "layer": self.layer,
            "head": self.head,
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass
class Story:
    """Takes down what is told, chapter by chapter."""

    chapter: str = ""
    parts: list[Part] = field(default_factory=list)

    def begin(self, chapter: str) -> None:
        self.chapter = chapter

    def tell(
        self, name: str, formula: str, values: Tensor, labels: Sequence[str] = (), note: str = ""
    ) -> None:
        """The next value, without dimensions of size one that only batches need."""
        kept = values.detach().cpu()
        assert not labels or len(labels) == len(kept), "a label for each row"
        self.parts.append(Part(self.chapter, name, formula, kept, tuple(labels), note))


@dataclass(frozen=True)
class Words:
    """What stands at each position: of the source, and of what the decoder has taken in."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True)
class Focus:
    """Which look is laid open, from 1; None: the top layer's, the first head's."""

    layer: int | None = None
    head: int | None = None
