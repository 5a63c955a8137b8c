"""Recurrent encoder and decoder."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.core.sequences import Packing, Padded, Source
from seqloom.models.handover import Handover
from seqloom.models.interface import (
    Common,
    DecoderModule,
    EncoderModule,
    Memory,
    State,
    Step,
    at_position,
)
from seqloom.models.taught import Taught
from seqloom.nn.cache import KeysValues
from seqloom.nn.copying import Copying
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
class _Source:
    """What is known of the source during decoding; the keys are prepared once."""

    readable: KeysValues | None
    mask: Tensor | None  # (B, 1, 1, S); None: all is visible
    summary: Tensor  # (B, D) the top layer's
    watched: bool = False  # does anybody want to know where a step looks?


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

    def start(
        self, memory: Memory, steps: int, *, watched: bool = True, static: bool = False
    ) -> State:
        source = self._source(memory)
        states = self.handover(memory.summary)  # (B, L, C)
        readable = source.readable
        keys = None if readable is None else (readable.keys, readable.values)
        table = self.embedder.positions.tabulate(steps, states)
        common = None if table is None else Common(table)
        position = torch.zeros((), dtype=torch.long, device=states.device) if static else 0
        mask = source.mask
        if self.attention is not None and mask is not None and not (watched or static):
            mask = self.attention.visible(mask, states.dtype)
        return State(
            (keys, mask, source.summary, common, self.copyable(memory)),
            (states, self._no_context(states)),
            position,
            watched,
        )

    def step(self, tokens: Tensor, state: State) -> Step:
        keys, mask, summary, table, copyable = state.fixed
        states, context = state.moving
        memory = None if keys is None else KeysValues(*keys)
        source = _Source(memory, mask, summary, state.watched)
        row = None if table is None else at_position(table.value, state.position)
        inputs = self.embedder.step(tokens, row)
        features, states, context, weights = self._advance(inputs, source, states, context)
        logits = self.speak(self.dropout(features), copyable)
        attention = None if weights is None else weights.unsqueeze(1)  # (R, 1, H, S)
        return Step(logits, state.after((states, context)), attention)

    def teach(self, inputs: Tensor, memory: Memory, packing: Packing | None = None) -> Taught:
        assert packing is None, "a chain of states would run from one pair into the next"
        source = self._source(memory)
        states = self.handover(memory.summary)
        embedded = self.embedder(inputs)  # (B, T, E)
        if self.uses & {"input", "state"}:
            features = self._teach_in_turn(embedded, source, states)
        else:
            features = self._teach_at_once(embedded, source, states)
        return self.taught(self.dropout(features), self.copyable(memory))

    def _teach_in_turn(self, embedded: Tensor, source: _Source, states: Tensor) -> Tensor:
        """The context runs back into the recurrence, so one position must wait for the other."""
        if self.attention is not None and source.readable is not None and source.mask is not None:
            readable = self.attention.in_turn(source.readable, source.mask, embedded.shape[1])
            source = replace(source, readable=readable)
        context = self._no_context(states)
        features = []
        for inputs in embedded.unbind(1):
            feature, states, context, _ = self._advance(inputs, source, states, context)
            features.append(feature)
        return torch.stack(features, dim=1)

    def _teach_at_once(self, embedded: Tensor, source: _Source, states: Tensor) -> Tensor:
        """No state depends on a context: run each layer over all positions, attend to all at once."""
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
                assert source.readable is not None
                before = torch.cat((start[:, None, : self.width], hidden[:, :-1]), dim=1)
                queries = before if self.asks_with_previous else hidden
                context = self.attention.read(queries, source.readable, source.mask)
        return self.features(hidden, context, summary, embedded)

    def _advance(
        self, inputs: Tensor, source: _Source, states: Tensor, context: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """One position: features (R, F), states (R, L, C), context (R, A), weights (R, H, S)."""
        weights: Tensor | None = None
        summary = source.summary.repeat_interleave(len(inputs) // len(source.summary), dim=0)
        before = list(states.unbind(1))  # L of (R, C)
        if self.attention is not None and self.asks_with_previous:
            context, weights = self._look(before[self.asking_layer], source)
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
                context, weights = self._look(state, source)
                state = self.after_asking(state, context)
            hidden = state[:, : self.width]
            after.append(state)
        features = self.features(hidden, context, summary, inputs)
        return features, torch.stack(after, dim=1), context, weights

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

    def _look(self, state: Tensor, source: _Source) -> tuple[Tensor, Tensor | None]:
        """Ask with the h of a state (R, C): context (R, A), weights (R, H, S) if watched."""
        assert self.attention is not None
        assert source.readable is not None
        return self.attention.step_across(
            state[:, : self.width], source.readable, source.mask, source.watched
        )

    def after_asking(self, state: Tensor, context: Tensor) -> Tensor:
        """The state that asked, with a in the place of h if that is how a is used: (R, C)"""
        if "state" not in self.uses:
            return state
        cell = state[:, self.width :]  # an LSTM's c stays; others have none
        return torch.cat((self.to_state(context), cell), dim=-1)

    def _source(self, memory: Memory) -> _Source:
        readable = None if self.attention is None else self.attention.keys_values(memory.states)
        top = memory.summary[:, -1] if memory.summary.shape[1] else memory.summary.flatten(1)
        return _Source(readable, memory.mask[:, None, None], top)

    def _no_context(self, states: Tensor) -> Tensor:
        """Before the first step nothing has been read: (B, A) zeros."""
        return states.new_zeros(states.shape[0], self.context_width)
