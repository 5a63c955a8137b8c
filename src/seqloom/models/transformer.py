"""Transformer encoder and decoder (Vaswani et al. 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seqloom.core.batch import Packing, Padded, Source
from seqloom.models.interface import (
    DecoderModule,
    DecoderOutput,
    EncoderModule,
    HiddenLayer,
    Memory,
    State,
    Step,
    module_list,
    row_at,
    static_position,
)
from seqloom.models.step_description import StepDescription, StepObserver
from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.embedding import Embedder, Readout
from seqloom.nn.fast import fused_transformer
from seqloom.nn.fast.fused_transformer import TokenInputs, can_fuse
from seqloom.nn.fast.kernels import LayerNorm
from seqloom.nn.fast.linear import PackedLinear
from seqloom.nn.fast.multihead import joined_projections, prepare_mask
from seqloom.nn.fast.static_cache import SlotTable, StaticCache
from seqloom.nn.key_value_cache import KeysValues, KeyValueCache
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import observing
from seqloom.nn.transformer import (
    CrossAttentionInput,
    DecoderLayer,
    EncoderLayer,
    Norm,
)


def build_final_norm(norm: Norm, width: int) -> nn.Module:
    """Build the module after the last layer: layer normalisation for "pre", identity for "post".

    Only pre-norm layers need a final normalisation, because they do not normalise their own output.
    """
    return LayerNorm(width) if norm == "pre" else nn.Identity()


def _unsupported_by_ctranslate2(
    name: str, embedder: Embedder, layers: Sequence[EncoderLayer | DecoderLayer]
) -> list[str]:
    # All layers have the same settings. Self-attention and cross-attention of a decoder layer have
    # the same settings, too.
    reasons = embedder.unsupported_by_ctranslate2(name)
    reasons += layers[0].attention.unsupported_by_ctranslate2(f"{name}.attention")
    if any(not layer.attention_residual.skip for layer in layers):
        reasons.append(
            f"{name}.remove_residual: a layer without residual connection is not supported"
        )
    return reasons


def transformer_layers(layers: Sequence[EncoderLayer | DecoderLayer]) -> list[HiddenLayer]:
    """Return one `HiddenLayer` for each Transformer layer.

    The values that an observer receives are those after the last residual connection of the layer.
    """
    return [
        HiddenLayer(f"layer {number}", layer.feedforward_residual, layer.attention.query_width)
        for number, layer in enumerate(layers, start=1)
    ]


class TransformerEncoder(EncoderModule):
    """Layers of self-attention over all source positions."""

    is_transformer = True

    def __init__(self, embedder: Embedder, layers: list[EncoderLayer], norm: Norm) -> None:
        super().__init__()
        self.embedder = embedder
        self.layers = module_list(layers)
        self.norm = build_final_norm(norm, embedder.width)
        self.source_limits = embedder.positions.limits

    @property
    def layer_stack(self) -> Sequence[nn.Module]:
        return self.layers

    def unsupported_by_ctranslate2(self, name: str) -> list[str]:
        if type(self) is not TransformerEncoder:  # a subclass can compute something else
            return super().unsupported_by_ctranslate2(name)
        return _unsupported_by_ctranslate2(name, self.embedder, self.layers)

    def hidden_layers(self) -> list[HiddenLayer]:
        return transformer_layers(self.layers)

    def forward(self, source: Source, packing: Packing | None = None) -> Memory:
        assert isinstance(source, Padded), "this encoder needs tokens or vectors, not images"
        mask = source.mask
        position_ids = 0 if packing is None else packing.source_positions
        if can_fuse(self.layers, source.values, source.values):
            inputs = TokenInputs(self.embedder, source.values, position_ids)
            pairs = mask.long() if packing is None else packing.source_pairs  # 0 is padding
            states = fused_transformer.encode(self.layers, self.norm, inputs, pairs)
            if packing is None:  # the decoder may be recurrent and expects float32
                states = states.float()
        else:
            stream = self.embedder(source.values, position_ids)  # (B, S, D)
            visible = mask[:, None, None] if packing is None else packing.source_mask
            for layer in self.layers:
                stream = layer(stream, visible, position_ids)
            states = self.norm(stream)
        if packing is not None:  # a row holds several sources, so it has no summary
            return Memory(states, mask, torch.zeros_like(states[:, :1]), source.tokens)
        # A Transformer has no final state, so its summary is the mean of the states. A recurrent
        # decoder can compute its initial state from the summary.
        total = states.masked_fill(~mask.unsqueeze(-1), 0).sum(1, keepdim=True)
        return Memory(states, mask, total / source.lengths[:, None, None], source.tokens)


@dataclass(frozen=True)
class TransformerSource:
    """The part of a decoder state that is computed once per source (`State.fixed`).

    keys_values: keys and values of the source for each layer; None without cross-attention
    mask:        (B, 1, 1, S) mask of the visible source positions: booleans, or numbers to add to
                 the attention scores. None if attention needs no mask
    positions:   (T, P) table of position vectors of width P; None if there is no table
    projections: for each layer, its query, key and value projections joined into one matrix; None
                 for a layer whose projections are not joined
    copyable:    source tokens that can be copied; None without a copy mechanism
    """

    keys_values: tuple[KeysValues | None, ...]
    mask: Tensor | None
    positions: Tensor | None
    projections: tuple[PackedLinear | None, ...]
    copyable: Copyable | None

    def select(self, rows: Tensor) -> "TransformerSource":
        return replace(
            self,
            keys_values=tuple(None if kv is None else kv.select(rows) for kv in self.keys_values),
            mask=None if self.mask is None else self.mask.index_select(0, rows),
            copyable=None if self.copyable is None else self.copyable.select(rows),
        )


@dataclass(frozen=True)
class TransformerCache:
    """The keys and values of all previous target positions, for each hypothesis (`State.moving`).

    layers: cache of each layer
    slots:  for static caches (tensors at fixed addresses), the table that says where each position
            is stored. All layers share it. None if the caches are not static
    """

    layers: tuple[KeyValueCache | StaticCache, ...]
    slots: SlotTable | None = None

    def select(self, rows: Tensor) -> "TransformerCache":
        slots = None if self.slots is None else self.slots.select(rows)
        return TransformerCache(tuple(layer.select(rows) for layer in self.layers), slots)

    def copy_(self, later: "TransformerCache") -> None:
        """Do nothing, because this cache already contains the tensors of `later`.

        `later` is the cache after a step. The step has updated the tensors in place.
        """
        assert self.slots is later.slots

    def load(self, other: "TransformerCache", rows: Tensor) -> None:
        for mine, theirs in zip(self.layers, other.layers, strict=True):
            assert isinstance(mine, StaticCache)
            assert isinstance(theirs, StaticCache)
            mine.load(theirs, rows)


class TransformerDecoder(DecoderModule):
    """Layers of causal self-attention and cross-attention.

    `forward` computes all target positions at once; `step` computes one position, with a cache.
    """

    is_transformer = True

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
        self.layers = module_list(layers)
        self.norm = build_final_norm(norm, embedder.width)
        self.readout = readout
        self.copying = copying
        self.target_limits = embedder.positions.limits

    @property
    def layer_stack(self) -> Sequence[nn.Module]:
        return self.layers

    def unsupported_by_ctranslate2(self, name: str) -> list[str]:
        if type(self) is not TransformerDecoder:  # a subclass can compute something else
            return super().unsupported_by_ctranslate2(name)
        return _unsupported_by_ctranslate2(name, self.embedder, self.layers)

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        cross = self.layers[0].cross_attention
        mask: Tensor | None = memory.mask[:, None, None]
        if cross is not None and not need_attention:
            mask = prepare_mask(cross, memory.mask[:, None, None], next(self.parameters()).dtype)
        caches = TransformerCache(tuple(KeyValueCache(max_steps) for _ in self.layers))
        return State(self._source(memory, mask, max_steps), caches, 0, need_attention)

    def start_static(self, memory: Memory, max_steps: int) -> State:
        weight = next(self.parameters())
        position = static_position(weight.device)
        slots = SlotTable(len(memory.mask), max_steps, position)
        example = weight.new_zeros(1, 1, self.embedder.width)
        caches = tuple(
            StaticCache(slots, layer.attention.project_keys_values(example))
            for layer in self.layers
        )
        source = self._source(memory, memory.mask[:, None, None], max_steps, static=True)
        return State(source, TransformerCache(caches, slots), position, need_attention=False)

    def _source(
        self, memory: Memory, mask: Tensor | None, max_steps: int, static: bool = False
    ) -> TransformerSource:
        return TransformerSource(
            keys_values=tuple(self._project_memory(memory)),
            mask=mask,
            positions=self.embedder.positions.tabulate(max_steps, next(self.parameters())),
            projections=tuple(joined_projections(layer.attention, static) for layer in self.layers),
            copyable=self.copyable(memory),
        )

    def step(self, tokens: Tensor, state: State) -> Step:
        source: TransformerSource = state.fixed
        caches: TransformerCache = state.moving
        table = source.positions
        row = None if table is None else row_at(table, state.position)
        stream = self.embedder.step(tokens, row)  # (R, D)
        attention = []
        for layer, cache, keys_values, projections in zip(
            self.layers, caches.layers, source.keys_values, source.projections, strict=True
        ):
            cross = (
                None
                if keys_values is None
                else CrossAttentionInput(keys_values, source.mask, state.need_attention)
            )
            stream, weights = layer.step(stream, cache, projections, cross)
            if weights is not None:
                attention.append(weights)
        logits = self.next_logits(self.norm(stream), source.copyable)
        stacked = torch.stack(attention, dim=1) if attention else None  # (R, L, H, S)
        return Step(logits, state.after(caches), stacked)

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        position_ids = 0 if packing is None else packing.target_positions
        memory_mask = memory.mask[:, None, None] if packing is None else packing.cross_mask
        if can_fuse(self.layers, tokens, memory.states):
            inputs = TokenInputs(self.embedder, tokens, position_ids)
            if packing is None:
                pairs = torch.ones_like(tokens), memory.mask.long()  # 0 is padding
            else:
                pairs = packing.target_pairs, packing.source_pairs
            features = fused_transformer.decode(
                self.layers, self.norm, inputs, memory.states, pairs
            )
        else:
            stream = self.embedder(tokens, position_ids)  # (B, T, D)
            causal_mask = None if packing is None else packing.target_mask
            for layer in self.layers:
                stream = layer(stream, memory.states, memory_mask, causal_mask, position_ids)
            features = self.norm(stream)
        # `squeeze` removes the head dimension: (B, 1, T or 1, S) -> (B, T or 1, S)
        return self.output(features, self.copyable(memory, memory_mask.squeeze(1)))

    @property
    def attention_heads(self) -> tuple[int, int]:
        return len(self.layers), self.layers[0].attention.heads

    def hidden_layers(self) -> list[HiddenLayer]:
        return transformer_layers(self.layers)

    def source_attentions(self) -> list[MultiHeadAttention]:
        layers = [layer.cross_attention for layer in self.layers]
        return [attention for attention in layers if attention is not None]

    def describe_step(self, memory: Memory, description: StepDescription) -> Tensor:
        """Describe the input, the selected layer and the output of the last position."""
        observed = StepObserver()
        with observing(observed):
            features = self(description.tokens, memory).features[:, -1]
            logits = self.next_logits(features, self.copyable(memory))
        description.begin_section("input")
        description.add_input(self.embedder, observed)
        self._describe_layer(observed, description)
        above = len(self.layers) - 1 - description.layer
        last = "x‴" if above == 0 else f"x‴ after {above} more layer{'s' if above > 1 else ''}"
        formula = last if isinstance(self.norm, nn.Identity) else f"norm({last})"
        return self.describe_output(formula, logits, observed, description)

    def _describe_layer(self, observed: StepObserver, description: StepDescription) -> None:
        """Add the values of the selected layer at the last position."""
        index, labels = description.layer, description.labels
        layer, values = self.layers[index], observed.values
        below: tuple[nn.Module, str] = (self.embedder, "input")
        origin = f" = {description.current('x')}"
        if index > 0:
            below = (self.layers[index - 1].feedforward_residual, "stream")
            origin = f", the output of layer {index}"
        cross, cross_residual = layer.cross_attention, layer.cross_attention_residual
        sublayers = [
            ("self-attention", "x′", layer.attention_residual, layer.attention, labels.target),
            ("cross-attention", "x″", cross_residual, cross, labels.source),
            ("feed-forward", "x‴", layer.feedforward_residual, None, ()),
        ]
        symbol = "x"
        for name, after, residual, attention, tokens in sublayers:
            if residual is None:
                continue
            description.begin_section(f"layer {index + 1}: {name}")
            if symbol == "x":
                description.add("stream", f"x{origin}", values[below][0, -1])
            state = residual.input_formula(symbol)
            inner = layer.feedforward.formula(state)
            if attention is not None:
                attended, source = (
                    observed.attentions[attention],
                    "h" if attention is cross else state,
                )
                description.add_attention(attention, attended, state, source, tokens)
                inner = description.current("a")
            formula = f"{after} = {residual.formula(symbol, inner)}"
            description.add("stream", formula, values[residual, "stream"][0, -1])
            symbol = after

    def _project_memory(self, memory: Memory) -> list[KeysValues | None]:
        """Return the keys and values of the source for each layer; None without cross-attention."""
        return [
            None
            if layer.cross_attention is None
            else layer.cross_attention.project_keys_values(memory.states)
            for layer in self.layers
        ]
