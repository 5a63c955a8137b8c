"""Labels in step with the source, or one for all of it: the simplest decoders there are."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from seqloom.core.batch import Packing
from seqloom.models.interface import (
    DecoderModule,
    DecoderOutput,
    Memory,
    NoRows,
    State,
    Step,
    static_position,
)
from seqloom.nn.dropout import Dropout
from seqloom.nn.embedding import Lookup
from seqloom.nn.labels import LabelReadout

Reading = Callable[[Memory], tuple[Tensor, Tensor]]
"""What there is to label: (B, N, D) vectors, and how many of each row are labelled, (B,)"""


def read_positions(memory: Memory) -> tuple[Tensor, Tensor]:
    """Many to many: the state at every position. The last is END's, which gets no label."""
    return memory.states, memory.mask.sum(1) - 1


def read_last(memory: Memory) -> tuple[Tensor, Tensor]:
    """Many to one: the encoder's last state."""
    return memory.summary[:, -1:], _one_each(memory)


def read_mean(memory: Memory) -> tuple[Tensor, Tensor]:
    """Many to one: the mean of the states."""
    total = memory.states.masked_fill(~memory.mask.unsqueeze(-1), 0).sum(1, keepdim=True)
    lengths = memory.mask.sum(1).clamp(min=1)  # a row that only fills up a batch has none
    return total / lengths[:, None, None], _one_each(memory)


def _one_each(memory: Memory) -> Tensor:
    return memory.mask.new_ones(len(memory.mask), dtype=torch.long)


@dataclass(frozen=True)
class LabelDecoderParts:
    """What a decoder of labels is put together from."""

    reading: Reading
    previous: Lookup | None
    """Turns the label before into a vector; None: it is not looked at."""
    readout: LabelReadout
    dropout: float


@dataclass(frozen=True)
class LabelSource:
    """The vectors to label, as `Reading` returns them: the `fixed` part of the decoder's state."""

    vectors: Tensor  # (B, N, D)
    counts: Tensor  # (B,)

    def select(self, rows: Tensor) -> "LabelSource":
        return LabelSource(self.vectors.index_select(0, rows), self.counts.index_select(0, rows))


class LabelDecoder(DecoderModule):
    """At step t the answer to the t-th vector that was read, then END, and nothing else ever.

    p(y_t | y_<t, x) is p(y_t | h_t), or p(y_t | h_t, y_{t-1}) if the label before is looked at.
    """

    readout: LabelReadout

    def __init__(self, parts: LabelDecoderParts) -> None:
        super().__init__()
        self.reading = parts.reading
        self.previous = parts.previous
        self.readout = parts.readout
        self.dropout = Dropout(parts.dropout)
        self.max_length = None

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        return State(LabelSource(*self.reading(memory)), NoRows(), 0, need_attention)

    def start_static(self, memory: Memory, max_steps: int) -> State:
        state = self.start(memory, max_steps, need_attention=False)
        return replace(state, position=static_position(memory.mask.device))

    def step(self, tokens: Tensor, state: State) -> Step:
        source: LabelSource = state.fixed
        hypotheses = len(tokens) // len(source.counts)
        position = (torch.zeros_like(source.counts) + state.position).unsqueeze(1)  # (B, 1)
        here = _labelled(source.vectors, source.counts, position).squeeze(1)  # (B, D + 1)
        features = self._features(here.repeat_interleave(hypotheses, dim=0), tokens)
        return Step(self.readout(features), state.after(NoRows()), None)

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        assert packing is None, "the pairs of a row would have one end between them"
        vectors, counts = self.reading(memory)
        places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        return self.output(self._features(_labelled(vectors, counts, places), tokens), None)

    def _features(self, here: Tensor, tokens: Tensor) -> Tensor:
        """(…, D + 1), (…) -> (…, D' + 1)"""
        vectors, ends = here[..., :-1], here[..., -1:]
        if self.previous is not None:
            vectors = torch.cat((vectors, self.previous(tokens)), dim=-1)
        return torch.cat((self.dropout(vectors), ends), dim=-1)


def _labelled(vectors: Tensor, counts: Tensor, places: Tensor) -> Tensor:
    """The vector at each place, and whether the labels have ended there.

    (B, N, D), (B,), (B, T) -> (B, T, D + 1). Behind the end it is the last vector again, so that
    what lies under the padding is never seen.
    """
    last = (counts - 1).clamp(min=0).unsqueeze(1)
    found = torch.minimum(places, last).unsqueeze(-1).expand(-1, -1, vectors.shape[-1])
    ends = (places >= counts.unsqueeze(1)).unsqueeze(-1)
    return torch.cat((vectors.gather(1, found), ends.to(vectors.dtype)), dim=-1)
