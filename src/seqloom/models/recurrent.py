"""Recurrent encoder and decoder."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.core.batch import Packing, Padded, Source
from seqloom.models.handover import Handover
from seqloom.models.interface import (
    DecoderModule,
    DecoderOutput,
    EncoderModule,
    Memory,
    State,
    Step,
    row_at,
    static_position,
)
from seqloom.nn.cache import KeysValues
from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.dropout import Dropout
from seqloom.nn.embedding import Embedder, Readout
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.recurrent import RecurrentLayer, reverse
from seqloom.nn.stack import stack

ContextUse = Literal["input", "readout", "layer", "state"]
SummaryUse = Literal["input", "readout"]


class RecurrentEncoder(EncoderModule):
    """Reads the source forwards, backwards, or both, layer upon layer.

    An annotation h_s is the top layer's state at position s; read in both directions, the two
    states of a position stand side by side.
    """

    def __init__(
        self,
        embedder: Embedder,
        forward_layers: list[RecurrentLayer],
        backward_layers: list[RecurrentLayer],
        dropout: Dropout,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.forward_layers = stack(forward_layers)
        self.backward_layers = stack(backward_layers)
        self.dropout = dropout
        self.max_length = embedder.positions.max_length

    def forward(self, source: Source, packing: Packing | None = None) -> Memory:
        """(B, S) -> states (B, S, D) of the top layer, summary (B, L, C) of every layer's end"""
        assert isinstance(source, Padded), "tokens are read here"
        assert packing is None, "a chain of states would run from one pair into the next"
        states = self.embedder(source.values)  # (B, S, D)
        ends = []
        depth = max(len(self.forward_layers), len(self.backward_layers))
        for level in range(depth):
            layer_input = Padded(states if level == 0 else self.dropout(states), source.lengths)
            states, end = self._read(level, layer_input)
            ends.append(end)
        return Memory(states, source.mask, torch.stack(ends, dim=1), source.tokens)

    def _read(self, level: int, source: Padded) -> tuple[Tensor, Tensor]:
        """One layer in all its directions: states (B, S, D) and where each direction ended (B, C)."""
        states, ends = [], []
        if self.forward_layers:
            hidden, end = self.forward_layers[level].read(source)
            states.append(hidden)
            ends.append(end)
        if self.backward_layers:
            hidden, end = self.backward_layers[level].read(reverse(source))
            # Back in the order of the source, so that position s of the memory is word s.
            states.append(reverse(Padded(hidden, source.lengths)).values)
            ends.append(end)
        # An LSTM's end is [h, c]: all h side by side, then all c.
        parts = zip(*(end.split(hidden.shape[-1], dim=-1) for end in ends), strict=True)
        return torch.cat(states, -1), torch.cat([torch.cat(part, -1) for part in parts], -1)


@dataclass(frozen=True)
class RecurrentDecoderParts:
    """What a recurrent decoder is put together from, and where context and summary go."""

    embedder: Embedder
    layers: list[RecurrentLayer]
    handover: Handover
    attention: MultiHeadAttention | None
    asks_with_previous: bool
    """Is the query the state before this step's input (True) or after it?"""
    context_uses: frozenset[ContextUse]
    summary_uses: frozenset[SummaryUse]
    readout: Readout
    readout_sees_input: bool
    copying: Copying | None
    dropout: Dropout


@dataclass(frozen=True)
class RecurrentSource:
    """The `fixed` part of a decoder state: everything computed once per source.

    keys_values: None without attention
    mask:        (B, 1, 1, S), or the result of `MultiHeadAttention.visible`
    summary:     (B, D) final state of the top encoder layer
    positions:   (T, P) the position table, shared by all rows; None without one
    """

    keys_values: KeysValues | None
    mask: Tensor | None
    summary: Tensor
    copyable: Copyable | None
    positions: Tensor | None = None

    def select(self, rows: Tensor) -> "RecurrentSource":
        return RecurrentSource(
            keys_values=None if self.keys_values is None else self.keys_values.select(rows),
            mask=None if self.mask is None else self.mask.index_select(0, rows),
            summary=self.summary.index_select(0, rows),
            copyable=None if self.copyable is None else self.copyable.select(rows),
            positions=self.positions,
        )


@dataclass(frozen=True)
class RecurrentState:
    """The `moving` part of a decoder state: states (R, L, C) of all layers, context (R, A)."""

    states: Tensor
    context: Tensor

    def select(self, rows: Tensor) -> "RecurrentState":
        return RecurrentState(self.states.index_select(0, rows), self.context.index_select(0, rows))

    def copy_(self, later: "RecurrentState") -> None:
        """Overwrite the tensors with those of a later state."""
        self.states.copy_(later.states)
        self.context.copy_(later.context)


class RecurrentDecoder(DecoderModule):
    """s_t from s_{t-1} and the previous token, with or without a look at the source.

    Once a step, a layer asks: with its h from before the step or with its new one. The uses of
    the context a it reads, which may be combined:

        input    the lowest layer sees [y_{t-1}; a], where a is this step's if the query was the
                 state before it, else the last step's: this step's is not yet known
        layer    the layer above the one that asked sees [h; a]
        state    a takes the place of the h that asked: the old h before the cell reads it, or
                 the new one before anyone else does
        readout  logits = W [h; a]
    """

    def __init__(self, parts: RecurrentDecoderParts) -> None:
        super().__init__()
        self.embedder = parts.embedder
        self.layers = stack(parts.layers)
        self.handover = parts.handover
        self.attention = parts.attention
        self.asks_with_previous = parts.asks_with_previous
        self.uses = parts.context_uses if parts.attention is not None else frozenset()
        self.summary_uses = parts.summary_uses
        self.readout = parts.readout
        self.copying = parts.copying
        self.readout_sees_input = parts.readout_sees_input
        self.dropout = parts.dropout
        self.max_length = parts.embedder.positions.max_length
        self.width = parts.layers[-1].width
        # A context for the next layer must come from below it; otherwise the top state asks.
        self.asking_layer = 0 if "layer" in self.uses else len(parts.layers) - 1
        context_width = 0 if parts.attention is None else parts.attention.plan.context_width
        self.context_width = context_width
        self.to_state = (
            nn.Linear(context_width, self.width)
            if "state" in self.uses and context_width != self.width
            else nn.Identity()
        )

    def compile_parts(self) -> None:
        super().compile_parts()
        self._advance = torch.compile(self._advance, dynamic=False)  # type: ignore[method-assign]

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        moving = self._initial(memory)
        source = self._source(memory, max_steps, moving.states)
        if self.attention is not None and source.mask is not None and not need_attention:
            mask = self.attention.visible(source.mask, moving.states.dtype)
            source = replace(source, mask=mask)
        return State(source, moving, 0, need_attention)

    def start_static(self, memory: Memory, max_steps: int) -> State:
        moving = self._initial(memory)
        source = self._source(memory, max_steps, moving.states)
        return State(source, moving, static_position(memory.mask.device), need_attention=False)

    def step(self, tokens: Tensor, state: State) -> Step:
        source: RecurrentSource = state.fixed
        table = source.positions
        row = None if table is None else row_at(table, state.position)
        inputs = self.embedder.step(tokens, row)
        features, moving, weights = self._advance(
            inputs, source, state.moving, state.need_attention
        )
        logits = self.next_logits(self.dropout(features), source.copyable)
        attention = None if weights is None else weights.unsqueeze(1)  # (R, 1, H, S)
        return Step(logits, state.after(moving), attention)

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        assert packing is None, "a chain of states would run from one pair into the next"
        moving = self._initial(memory)
        source = self._source(memory, 0, moving.states)
        embedded = self.embedder(tokens)  # (B, T, E)
        if self.uses & {"input", "state"}:
            features = self._forward_stepwise(embedded, source, moving)
        else:
            features = self._forward_parallel(embedded, source, moving.states)
        return self.output(self.dropout(features), source.copyable)

    def _forward_stepwise(
        self, embedded: Tensor, source: RecurrentSource, moving: RecurrentState
    ) -> Tensor:
        """The context feeds back into the recurrence, so positions are computed one by one."""
        keys_values, mask = source.keys_values, source.mask
        if self.attention is not None and keys_values is not None and mask is not None:
            shared = self.attention.in_turn(keys_values, mask, embedded.shape[1])
            source = replace(source, keys_values=shared)
        features = []
        for inputs in embedded.unbind(1):
            feature, moving, _ = self._advance(inputs, source, moving, need_attention=False)
            features.append(feature)
        return torch.stack(features, dim=1)

    def _forward_parallel(
        self, embedded: Tensor, source: RecurrentSource, states: Tensor
    ) -> Tensor:
        """No state depends on a context: run each layer, then attention, over all positions."""
        length = embedded.shape[1]
        summary = source.summary.unsqueeze(1).expand(-1, length, -1)
        hidden = torch.cat((embedded, summary), -1) if "input" in self.summary_uses else embedded
        context: Tensor | None = None
        for level, layer in enumerate(self.layers):
            if context is not None and "layer" in self.uses and level == self.asking_layer + 1:
                hidden = torch.cat((hidden, context), -1)
            start = states[:, level]
            hidden, _ = layer(hidden if level == 0 else self.dropout(hidden), start)
            if self.attention is not None and level == self.asking_layer:
                assert source.keys_values is not None
                before = torch.cat((start[:, None, : self.width], hidden[:, :-1]), dim=1)
                queries = before if self.asks_with_previous else hidden
                context = self.attention.read(queries, source.keys_values, source.mask)
        return self.features(hidden, context, summary, embedded)

    def _advance(
        self, inputs: Tensor, source: RecurrentSource, moving: RecurrentState, need_attention: bool
    ) -> tuple[Tensor, RecurrentState, Tensor | None]:
        """One position: features (R, F), the new state, weights (R, H, S) if `need_attention`."""
        weights: Tensor | None = None
        states, context = moving.states, moving.context
        summary = source.summary.repeat_interleave(len(inputs) // len(source.summary), dim=0)
        before = list(states.unbind(1))  # L of (R, C)
        if self.attention is not None and self.asks_with_previous:
            context, weights = self._attend(before[self.asking_layer], source, need_attention)
            before[self.asking_layer] = self.after_asking(before[self.asking_layer], context)
        hidden = inputs
        if "input" in self.uses:
            hidden = torch.cat((hidden, context), -1)
        if "input" in self.summary_uses:
            hidden = torch.cat((hidden, summary), -1)
        after = []
        for level, layer in enumerate(self.layers):
            if "layer" in self.uses and level == self.asking_layer + 1:
                hidden = torch.cat((hidden, context), -1)
            state = layer.step(hidden if level == 0 else self.dropout(hidden), before[level])
            asks = self.attention is not None and level == self.asking_layer
            if asks and not self.asks_with_previous:
                context, weights = self._attend(state, source, need_attention)
                state = self.after_asking(state, context)
            hidden = state[:, : self.width]
            after.append(state)
        features = self.features(hidden, context, summary, inputs)
        return features, RecurrentState(torch.stack(after, dim=1), context), weights

    def features(
        self, hidden: Tensor, context: Tensor | None, summary: Tensor, inputs: Tensor
    ) -> Tensor:
        """What the readout sees: (…, F)"""
        parts = [hidden]
        if context is not None and "readout" in self.uses:
            parts.append(context)
        if "readout" in self.summary_uses:
            parts.append(summary)
        if self.readout_sees_input:
            parts.append(inputs)
        return torch.cat(parts, dim=-1)

    def _attend(
        self, state: Tensor, source: RecurrentSource, need_attention: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attention with the h of a state (R, C) as query: context (R, A), weights (R, H, S)."""
        assert self.attention is not None
        assert source.keys_values is not None
        return self.attention.step_across(
            state[:, : self.width], source.keys_values, source.mask, need_attention
        )

    def after_asking(self, state: Tensor, context: Tensor) -> Tensor:
        """The state that asked, with a in the place of h if that is how a is used: (R, C)"""
        if "state" not in self.uses:
            return state
        cell = state[:, self.width :]  # an LSTM's c stays; others have none
        return torch.cat((self.to_state(context), cell), dim=-1)

    def _source(self, memory: Memory, max_steps: int, like: Tensor) -> RecurrentSource:
        """like: a tensor with the dtype and device of the position table"""
        attention, positions = self.attention, self.embedder.positions
        return RecurrentSource(
            keys_values=None if attention is None else attention.keys_values(memory.states),
            mask=memory.mask[:, None, None],
            summary=memory.summary[:, -1] if memory.summary.shape[1] else memory.summary.flatten(1),
            copyable=self.copyable(memory),
            positions=positions.tabulate(max_steps, like) if max_steps else None,
        )

    def _initial(self, memory: Memory) -> RecurrentState:
        """The state before the first step: the initial state and a context of zeros."""
        states = self.handover(memory.summary)  # (B, L, C)
        return RecurrentState(states, states.new_zeros(states.shape[0], self.context_width))
