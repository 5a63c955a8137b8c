"""Transformer encoder and decoder."""

import torch
from torch import Tensor, nn

from seqloom.core.sequences import Packing, Padded, Source
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
from seqloom.nn.cache import Ancestry, KeysValues, KeyValueCache, StaticCache
from seqloom.nn.copying import Copying
from seqloom.nn.embedding import Embedder, Readout
from seqloom.nn.stack import stack
from seqloom.nn.transformer import Across, DecoderLayer, EncoderLayer, Norm


def last_norm(norm: Norm, width: int) -> nn.Module:
    """Pre-norm leaves the stream as it is; one norm at the very end brings it to scale."""
    return nn.LayerNorm(width) if norm == "pre" else nn.Identity()


class TransformerEncoder(EncoderModule):
    """All source positions at once, each looking at all others, layer upon layer."""

    def compile_parts(self) -> None:
        for layer in self.layers:
            layer.compile(dynamic=False)

    def __init__(self, embedder: Embedder, layers: list[EncoderLayer], norm: Norm) -> None:
        super().__init__()
        self.embedder = embedder
        self.layers = stack(layers)
        self.norm = last_norm(norm, embedder.width)
        self.max_length = embedder.positions.max_length

    def forward(self, source: Source, packing: Packing | None = None) -> Memory:
        assert isinstance(source, Padded), "tokens are read here"
        mask = source.mask
        visible = mask[:, None, None] if packing is None else packing.source_mask
        place = 0 if packing is None else packing.source_positions
        stream = self.embedder(source.values, place)  # (B, S, D)
        for layer in self.layers:
            stream = layer(stream, visible, place)
        states = self.norm(stream)
        # There is no last state; the mean of all is what a recurrent decoder may start from.
        total = states.masked_fill(~mask.unsqueeze(-1), 0).sum(1, keepdim=True)
        return Memory(states, mask, total / source.lengths[:, None, None], source.tokens)


class TransformerDecoder(DecoderModule):
    """All target positions at once in training; one at a time, with a cache, in search."""

    def compile_parts(self) -> None:
        super().compile_parts()
        for layer in self.layers:
            layer.compile(dynamic=False)

    def __init__(
        self,
        embedder: Embedder,
        layers: list[DecoderLayer],
        norm: Norm,
        readout: Readout,
        copying: Copying | None = None,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.layers = stack(layers)
        self.norm = last_norm(norm, embedder.width)
        self.readout = readout
        self.copying = copying
        self.max_length = embedder.positions.max_length

    def start(
        self, memory: Memory, steps: int, *, watched: bool = True, static: bool = False
    ) -> State:
        readable = tuple(
            None if kv is None else (kv.keys, kv.values) for kv in self._readable(memory)
        )
        some = next(self.parameters())
        table = self.embedder.positions.tabulate(steps, some)
        cross, mask = self.layers[0].cross_attention, memory.mask[:, None, None]
        fixed = (
            readable,
            mask if watched or static or cross is None else cross.visible(mask, some.dtype),
            None if table is None else Common(table),
            tuple(layer.attention.joined(anew=static) for layer in self.layers),
            self.copyable(memory),
        )
        if not static:
            caches = tuple(KeyValueCache(steps) for _ in self.layers)
            return State(fixed, (None, caches), 0, watched)
        position = torch.zeros((), dtype=torch.long, device=some.device)
        ancestry = Ancestry(len(memory.mask), steps, position)
        example = some.new_zeros(1, 1, self.embedder.width)
        statics = tuple(
            StaticCache(ancestry, layer.attention.keys_values(example)) for layer in self.layers
        )
        return State(fixed, (ancestry, statics), position, watched)

    def step(self, tokens: Tensor, state: State) -> Step:
        readable, mask, table, joined, copyable = state.fixed
        row = None if table is None else at_position(table.value, state.position)
        stream = self.embedder.step(tokens, row)  # (R, D)
        seen = []
        for layer, past, keys, one_map in zip(
            self.layers, state.moving[1], readable, joined, strict=True
        ):
            across = None if keys is None else Across(KeysValues(*keys), mask, state.watched)
            stream, weights = layer.step(stream, past, one_map, across)
            if weights is not None:
                seen.append(weights)
        logits = self.speak(self.norm(stream), copyable)
        attention = torch.stack(seen, dim=1) if seen else None  # (R, L, H, S)
        return Step(logits, state.after(state.moving), attention)

    def teach(self, inputs: Tensor, memory: Memory, packing: Packing | None = None) -> Taught:
        place = 0 if packing is None else packing.target_positions
        mask = memory.mask[:, None, None] if packing is None else packing.cross_mask
        back = None if packing is None else packing.target_mask
        stream = self.embedder(inputs, place)  # (B, T, D)
        for layer, readable in zip(self.layers, self._readable(memory), strict=True):
            stream = layer(stream, readable, mask, back, place)
        # (B, 1, T or 1, S), the same for every head -> (B, T or 1, S)
        return self.taught(self.norm(stream), self.copyable(memory, mask.squeeze(1)))

    def _readable(self, memory: Memory) -> list[KeysValues | None]:
        """Every layer's keys and values of the source, computed once."""
        return [
            None
            if layer.cross_attention is None
            else layer.cross_attention.keys_values(memory.states)
            for layer in self.layers
        ]
