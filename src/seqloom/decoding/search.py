"""Interfaces of a search: `Search`, its input `SearchRequest`, and the decoder `StepDecoder`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from seqloom.core.errors import DataError
from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.decoding.rules import Rules
from seqloom.decoding.tracer import SearchDescription, Tracer
from seqloom.models.interface import Memory, State, Step
from seqloom.text.vocabulary import END, PAD, START

KeepAttention = Callable[[Tensor], Tensor]
"""Attention weights of a step (R, L, H, S) -> the part to keep for each row (R, ..., S).

R: rows; L: layers; H: heads; S: source positions.
"""
OnFinished = Callable[[int, list[Hypothesis]], None]
"""Called with the index of a source and its hypotheses, best first."""


@dataclass(frozen=True)
class ExcludedTokens:
    """Tokens that the outputs of one source must not contain after their forced prefix.

    sequences:    token sequences that must not occur. A sequence that lies completely in the
                  prefix is allowed. A sequence that starts in the prefix and ends after it is
                  not allowed
    after_prefix: tokens that must not follow the prefix directly
    """

    sequences: tuple[tuple[int, ...], ...] = ()
    after_prefix: frozenset[int] = frozenset()


@dataclass(frozen=True)
class SearchRequest:
    """What a search should return for each source of a batch.

    max_lengths:    maximum number of output tokens (END included) of each source. There is one
                    limit per source, so that an output does not depend on the rest of the batch
    prefixes:       for each source, the tokens that its outputs must start with. Prefixes may be
                    empty and may have different lengths. Default: None, no prefixes
    n_best:         maximum number of outputs per source. Default: 1
    keep_attention: function that takes the attention weights of a step and returns the part that
                    each hypothesis keeps. Default: None, which keeps no attention weights
    indices:        index of each source in the caller's list. Samples depend on this index and not
                    on the position in the batch, so that the caller may sort and split batches.
                    Default: None, which means 0, 1, ...
    tracer:         records the candidates of every step. Default: None
    excluded:       for each source, tokens that its outputs must not contain. Default: None, which
                    excludes nothing
    on_finished:    called with the index of a source in the batch and its hypotheses, as soon as
                    the search for this source is finished. Exhaustive search does not call it.
                    Default: None
    """

    max_lengths: Sequence[int]
    prefixes: Sequence[Sequence[int]] | None = None
    n_best: int = 1
    keep_attention: KeepAttention | None = None
    indices: Sequence[int] | None = None
    tracer: Tracer | None = None
    excluded: Sequence[ExcludedTokens] | None = None
    on_finished: OnFinished | None = None

    @property
    def all_prefixes(self) -> Sequence[Sequence[int]]:
        """The forced prefix of each source. It is empty for a source without a prefix."""
        return self.prefixes or [()] * len(self.max_lengths)

    def start_trace(self, search: SearchDescription) -> None:
        """Start the trace of a search, if the request has a tracer."""
        if self.tracer is not None:
            self.tracer.start_search(search, self.n_best, self.all_prefixes, self.max_lengths)

    def only(self, sources: Sequence[int]) -> "SearchRequest":
        """Return a request for only these sources of the batch, without `on_finished`."""
        indices = range(len(self.max_lengths)) if self.indices is None else self.indices
        return replace(
            self,
            max_lengths=[self.max_lengths[source] for source in sources],
            prefixes=None if self.prefixes is None else [self.prefixes[i] for i in sources],
            indices=[indices[source] for source in sources],
            excluded=None if self.excluded is None else [self.excluded[i] for i in sources],
            on_finished=None,
        )

    def check(self, source_count: int) -> None:
        """Raise DataError if a prefix leaves no room for END within the maximum length.

        source_count: number of sources in the batch. Every list of the request must have one entry
                      per source
        """
        prefixes = self.all_prefixes
        indices = range(source_count) if self.indices is None else self.indices
        assert source_count == len(self.max_lengths) == len(prefixes) == len(indices)
        assert self.n_best > 0
        assert all(length > 0 for length in self.max_lengths)
        assert not {PAD, START, END} & {token for prefix in prefixes for token in prefix}
        problems = [
            f"  source {index}: the prefix has {len(prefix)} tokens and max_length is {length}, "
            "END included; shorten the prefix or raise max_length"
            for index, prefix, length in zip(indices, prefixes, self.max_lengths, strict=True)
            if len(prefix) >= length
        ]
        if problems:
            raise DataError("\n".join(["a forced prefix is too long:", *problems]))


class StepDecoder(Protocol):
    """The methods of a `Decoder` that search algorithms call.

    A logit of -inf means that the token cannot come next. Each row has at least one finite logit.
    """

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State: ...

    def step(self, tokens: Tensor, state: State) -> Step: ...


class Search(Protocol):
    """Generates outputs for a batch of sources. It uses the model only through `StepDecoder`."""

    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Return at most n_best hypotheses per source.

        Finished hypotheses come before unfinished ones. Both groups are sorted by score, with the
        best first.

        Sampling is an exception: it returns all samples in the order in which they were drawn.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ScoredSearch:
    """The settings that all searches have. All of them are keyword arguments.

    length_penalty:    exponent a of the score log p / length^a. Default: 1
    rules:             rules that forbid tokens. Default: only PAD, START and UNKNOWN are forbidden
    length_counts_end: if True, END counts in the length. Default: False
    """

    length_penalty: float = 1.0
    rules: Rules = field(default_factory=Rules)
    length_counts_end: bool = False

    @property
    def normalisation(self) -> LengthNormalisation:
        """The definition of the score of a hypothesis."""
        return LengthNormalisation(self.length_penalty, self.length_counts_end)

    def describe(self, kind: str, width: int = 1, **properties: Any) -> SearchDescription:
        """Return what a tracer records about this search.

        properties: fields of `SearchDescription` that differ from their defaults
        """
        return SearchDescription(kind, width, self.normalisation, self.rules, **properties)


def log_softmax(logits: Tensor) -> Tensor:
    """Logits (R, V) -> log-probabilities (R, V) in float32, or float64 if the logits are float64.

    Half precision is too coarse for sums of several dozen log-probabilities.
    """
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    return logits.log_softmax(dim=-1, dtype=dtype)
