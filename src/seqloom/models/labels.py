"""A decoder that predicts a label for every source position, or one label for the whole source."""

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
from seqloom.models.step_description import StepDescription, StepObserver
from seqloom.nn.dropout import Dropout
from seqloom.nn.embedding import LabelReadout, Lookup
from seqloom.nn.formulas import concatenated, indexed
from seqloom.nn.observer import observing

VectorSelector = Callable[[Memory], tuple[Tensor, Tensor]]
"""Function that selects vectors (B, N, D) from the encoder output, one for each label to predict.
It also returns the number of labels of each row (B,)."""


def select_positions(memory: Memory) -> tuple[Tensor, Tensor]:
    """Select the encoder state at every position, to predict one label per position.

    The last position of a source is END, which gets no label.
    """
    return memory.states, memory.mask.sum(1) - 1


def select_last(memory: Memory) -> tuple[Tensor, Tensor]:
    """Select the final state of the encoder's top layer, to predict one label per source."""
    return memory.summary[:, -1:], _one_per_row(memory)


def select_mean(memory: Memory) -> tuple[Tensor, Tensor]:
    """Select the mean of the encoder states, to predict one label per source."""
    total = memory.states.masked_fill(~memory.mask.unsqueeze(-1), 0).sum(1, keepdim=True)
    lengths = memory.mask.sum(1).clamp(min=1)  # rows that pad a batch may have no positions
    return total / lengths[:, None, None], _one_per_row(memory)


def _one_per_row(memory: Memory) -> Tensor:
    return memory.mask.new_ones(len(memory.mask), dtype=torch.long)


SUMMARIES: dict[VectorSelector, str] = {
    select_last: "the encoder's last state",
    select_mean: "the mean of the encoder's states",
}
"""Descriptions of the vector, for selectors that select one vector for the whole source."""


@dataclass(frozen=True)
class LabelSource:
    """The part of the decoder state that stays the same at all steps.

    vectors: (B, N, D) the vectors from which labels are predicted. If each source
             position has a label, N is the number of positions. If each source has one label, N = 1
    counts:  (B,) number of labels of each source
    """

    vectors: Tensor
    counts: Tensor

    def select(self, rows: Tensor) -> "LabelSource":
        return LabelSource(self.vectors.index_select(0, rows), self.counts.index_select(0, rows))


class LabelDecoder(DecoderModule):
    """Predicts each label y_t from one encoder vector h_t, and END after the last label.

    p(y_t | y_<t, x) = p(y_t | h_t), or p(y_t | h_t, y_{t-1}) if `previous` is given.

    select_vectors: selects the vectors h_1, h_2, … from the encoder output
    previous:       embeds the previous label; None if labels do not depend on it
    """

    readout: LabelReadout

    def __init__(
        self,
        select_vectors: VectorSelector,
        previous: Lookup | None,
        readout: LabelReadout,
        dropout: float,
    ) -> None:
        super().__init__()
        self.select_vectors = select_vectors
        self.previous = previous
        self.readout = readout
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        return State(LabelSource(*self.select_vectors(memory)), NoRows(), 0, need_attention)

    def start_static(self, memory: Memory, max_steps: int) -> State:
        state = self.start(memory, max_steps, need_attention=False)
        return replace(state, position=static_position(memory.mask.device))

    def step(self, tokens: Tensor, state: State) -> Step:
        source: LabelSource = state.fixed
        hypotheses = len(tokens) // len(source.counts)
        position = (torch.zeros_like(source.counts) + state.position).unsqueeze(1)  # (B, 1)
        labelled = _gather_labelled(source.vectors, source.counts, position).squeeze(1)
        features = self._features(labelled.repeat_interleave(hypotheses, dim=0), tokens)
        return Step(self.next_logits(features, None), state.after(NoRows()), None)

    def describe_step(self, memory: Memory, description: StepDescription) -> Tensor:
        vectors, counts = self.select_vectors(memory)  # (1, N, D), (1,)
        observed = StepObserver()
        with observing(observed):
            *_, (_, step) = self.run_steps(description.tokens, memory)
        number, count = description.number, int(counts)
        index = min(number, max(count, 1)) - 1
        summary = SUMMARIES.get(self.select_vectors, indexed("h", index + 1))
        note = "the output has all its labels: only END is possible" if number > count else ""
        description.begin_section("input")
        description.add("labelled vector", f"v = {summary}", vectors[0, index], note=note)
        symbols = ["v"]
        if self.previous is not None:
            formula = self.previous.formula(description.previous("y"))
            previous = self.previous(description.tokens[:, -1])
            description.add("previous label", f"w = {formula}", previous[0])
            symbols.append("w")
        return self.describe_output(concatenated(symbols), step.logits, observed, description)

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        assert packing is None, "labels cannot be packed: a row has one end"
        vectors, counts = self.select_vectors(memory)
        positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        labelled = _gather_labelled(vectors, counts, positions)
        return self.output(self._features(labelled, tokens), None)

    def _features(self, labelled: Tensor, tokens: Tensor) -> Tensor:
        """Compute the input of the readout, the layer that computes logits: (…, F + 1)

        If the decoder uses the previous label, the embedding of this label is appended to the
        vector. F is the width of the vector with the embedding. Dropout is not applied to the end
        flag.

        labelled: (…, D + 1) a vector of width D and an end flag: 1 after the last label, else 0
        tokens:   (…) previous labels
        """
        vectors, ends = labelled[..., :-1], labelled[..., -1:]
        if self.previous is not None:
            vectors = torch.cat((vectors, self.previous(tokens)), dim=-1)
        return torch.cat((self.dropout(vectors), ends), dim=-1)


def _gather_labelled(vectors: Tensor, counts: Tensor, positions: Tensor) -> Tensor:
    """Return the vector at each target position, with an end flag appended: (B, T, D + 1)

    The flag is 0 at positions that have a label, and 1 after the last label. Positions after the
    last label get the vector of the last label, so that the vectors of padding are never used.

    vectors:   (B, N, D) the vectors from which the N labels of a source are predicted
    counts:    (B,) number of labels of each source
    positions: (B, T) target positions, from 0
    """
    last = (counts - 1).clamp(min=0).unsqueeze(1)
    index = torch.minimum(positions, last).unsqueeze(-1).expand(-1, -1, vectors.shape[-1])
    ends = (positions >= counts.unsqueeze(1)).unsqueeze(-1)
    return torch.cat((vectors.gather(1, index), ends.to(vectors.dtype)), dim=-1)
