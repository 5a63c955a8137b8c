"""Explanation: the values of one decoder step, in the order in which the decoder computes them."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class TracedValue:
    """One value of a decoder step.

    section: part of the step that computes the value, for example "attention"
    name:    for example "query"
    formula: how this model computes the value, for example "q₃ = Wq s₂ + bq"
    values:  one number (), one vector (D,), one number per position (N,), or one vector per
             position (N, D)
    labels:  tokens at the N positions; empty if there is only one number or one vector
    note:    remark that complements the formula; may be empty
    """

    section: str
    name: str
    formula: str
    values: Tensor
    labels: tuple[str, ...] = ()
    note: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON.

        In the JSON object, the key of the field `section` is "chapter".
        """
        return {
            "chapter": self.section,
            "name": self.name,
            "formula": self.formula,
            "note": self.note,
            "shape": list(self.shape),
            "labels": list(self.labels),
            "values": _to_lists(self.values),
        }


def _to_lists(values: Tensor) -> Any:
    """Convert to nested lists. Infinite values, such as logits of impossible tokens, are None."""

    def replace_infinite(value: Any) -> Any:
        if isinstance(value, list):
            return [replace_infinite(each) for each in value]
        return value if math.isfinite(value) else None

    return replace_infinite(values.tolist())


@dataclass(frozen=True)
class TokenProbability:
    """A token and its probability at the explained step.

    The probability is None for `Explanation.previous`, the token that the decoder reads: this step
    does not predict that token.
    """

    piece: str
    id: int
    probability: float | None = None


@dataclass(frozen=True)
class Explanation:
    """Explanation of one decoder step.

    source:   source pieces; empty for a language model
    output:   pieces of the complete output
    step:     the explained position of the output, counted from 1
    previous: token that the decoder reads at this step: START, or the previous output token.
              None for the lecture example, a calculation of self-attention without tokens
    answer:   token of the output at this step; None for the lecture example
    best:     the most probable tokens, best first
    layer:    layer of the explained attention head, counted from 1. None if the decoder has no
              attention, and for the lecture example
    head:     number of this head in its layer, counted from 1. None in the same cases
    parts:    all values, in the order of computation
    """

    source: tuple[str, ...]
    output: tuple[str, ...]
    step: int
    previous: TokenProbability | None
    answer: TokenProbability | None
    best: tuple[TokenProbability, ...]
    layer: int | None
    head: int | None
    parts: tuple[TracedValue, ...]

    def find(self, name: str, section: str | None = None) -> TracedValue:
        """Return the first value with this name.

        section: section in which to search. Default: all sections.
        """
        return next(
            value for value in self.parts if value.name == name and section in (None, value.section)
        )

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        return {
            "source": list(self.source),
            "output": list(self.output),
            "step": self.step,
            "previous": None if self.previous is None else asdict(self.previous),
            "answer": None if self.answer is None else asdict(self.answer),
            "best": [asdict(token) for token in self.best],
            "layer": self.layer,
            "head": self.head,
            "parts": [value.to_json() for value in self.parts],
        }


@dataclass(frozen=True)
class PositionLabels:
    """Labels of the positions in an explanation: source tokens and decoder input tokens."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True)
class HeadSelection:
    """The attention head to explain.

    layer: number of the layer, from 1. Default: None, the top layer.
    head:  number of the head in this layer, from 1. Default: None, the first head.
    """

    layer: int | None = None
    head: int | None = None
