"""What is asked of a search, what it answers, and the few formulas all searches share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from seqloom.core.errors import DataError
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.models.interface import Memory, State, Step
from seqloom.text.vocabulary import END, PAD, START

if TYPE_CHECKING:
    from seqloom.decoding.recorder import Recorder

KeepAttention = Callable[[Tensor], Tensor]
"""(R, L, H, S) where a step looked -> (R, …, S) what is kept of it for each row."""


@dataclass(frozen=True)
class Request:
    """What is wanted for each source of a batch.

    max_lengths:    tokens at most, END included. One per source, because an output must not
                    depend on what else is in the batch
    prefixes:       how each output must begin; may differ in length and be empty
    n_best:         outputs wanted for each source
    keep_attention: reduces a step's attention to what is kept; None keeps nothing, at no cost
    indices:        the number of each source in the caller's list, 0, 1, … if left out. A sample
                    depends on this number alone, so that batches can be cut and sorted freely
    recorder:       takes note of every candidate of every step; None: nobody does, at no cost
    """

    max_lengths: Sequence[int]
    prefixes: Sequence[Sequence[int]] | None = None
    n_best: int = 1
    keep_attention: KeepAttention | None = None
    indices: Sequence[int] | None = None
    recorder: "Recorder | None" = None

    def only(self, places: Sequence[int]) -> "Request":
        """What is wanted for the sources at these places."""
        indices = range(len(self.max_lengths)) if self.indices is None else self.indices
        return replace(
            self,
            max_lengths=[self.max_lengths[place] for place in places],
            prefixes=None if self.prefixes is None else [self.prefixes[place] for place in places],
            indices=[indices[place] for place in places],
        )

    def check(self, sources: int) -> None:
        """Is there one answer's worth of request for each source, and can it be met?"""
        prefixes = self.prefixes or [()] * sources
        indices = range(sources) if self.indices is None else self.indices
        assert sources == len(self.max_lengths) == len(prefixes) == len(indices)
        assert self.n_best > 0
        assert all(length > 0 for length in self.max_lengths)
        assert not {PAD, START, END} & {token for prefix in prefixes for token in prefix}
        problems = [
            f"  source {index}: must begin with {len(prefix)} tokens and may have {length}, END "
            "included; shorten its prefix or raise max_length"
            for index, prefix, length in zip(indices, prefixes, self.max_lengths, strict=True)
            if len(prefix) >= length
        ]
        if problems:
            raise DataError("\n".join(["an output has no room for its prefix:", *problems]))


class Stepper(Protocol):
    """The half of a Decoder that search uses.

    Its logits are numbers, -inf for a token that it never puts out there; one at least is finite.
    """

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State: ...

    def step(self, tokens: Tensor, state: State) -> Step: ...


class Search(Protocol):
    """Finds outputs. Knows nothing of the model but how to take a step with it."""

    def __call__(
        self, decoder: Stepper, memory: Memory, request: Request
    ) -> list[list[Hypothesis]]:
        """For each source its hypotheses, best first, at most n_best.

        The finished ones come first; unfinished ones fill up the list. Sampling alone differs:
        it gives all its samples in the order in which they were drawn.
        """
        ...


def normalise(log_probability: float, length: int, exponent: float) -> float:
    """score = log p / length^exponent

    Every further token makes log p smaller, so that by log p alone the short outputs win.
    """
    return log_probability / length**exponent


def log_softmax(logits: Tensor) -> Tensor:
    """(R, V) logits of any precision -> (R, V) log-probabilities in float32, float64 if they are.

    Half precision cannot tell apart the sums of a few dozen log-probabilities.
    """
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    return logits.log_softmax(dim=-1, dtype=wide)
