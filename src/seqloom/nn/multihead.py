"""Multi-head attention (Vaswani et al. 2017, section 3.2.2).

    q = f(Wq s + bq)    k_j = f(Wk h_j + bk)    v_j = Wv h_j + bv
    a = Wo [head_1; …; head_H] + bo    head_i = Σ_j α_j v_j    α = softmax of score(q, k_j) over j

The query q is computed from the state s. Keys and values are computed from the states h_j, to which
s attends. The result a is the context of s. q, k_j and v_j are split into H equal parts, and each
head uses its own part.

In every mask, True means visible. A mask is (B, S), or broadcastable to (B, H, T, S). None means
that every key is visible. `is_causal` hides from each query all keys after its position.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.attention import AttentionScore, DotScore, Selection, attention_weights
from seqloom.nn.fast.dispatch import can_use_kernels
from seqloom.nn.fast.kernels import cross_attention_step, self_attention_step
from seqloom.nn.fast.linear import Linear, PackedLinear, PackedLinearCache, joined_linear
from seqloom.nn.fast.repeated_attention import RepeatedKeysValues
from seqloom.nn.fast.static_cache import StaticCache
from seqloom.nn.formulas import indexed
from seqloom.nn.key_value_cache import Cache, KeysValues
from seqloom.nn.observer import AttentionInputs, AttentionTrace, current_observer
from seqloom.nn.positions import PositionIds, rotate

Projection = Literal["none", "linear", "sigmoid", "tanh"]
Values = Literal["learned", "states"]


class AttentionOutput(NamedTuple):
    """The result of attention.

    context: (B, T, C)    context vector of each query, of width `MultiHeadAttention.context_width`
    weights: (B, H, T, S) attention weights of each head
    """

    context: Tensor
    weights: Tensor


class MultiHeadAttention(nn.Module):
    """Multi-head attention: H attention heads in parallel.

        attention = MultiHeadAttention(64, heads=8)
        context, weights = attention(queries, states, mask=mask)

    query_width:       width of the queries
    heads:             number of heads, a divisor of the widths. Default: 1
    key_width:         width of the states that are attended to. Default: query_width
    width:             total width, over all heads, of projected queries, keys and values. Default:
                       query_width
    score:             similarity of queries and keys. Default: dot product / √d
    projection:        activation f of the layers f(W x + b) that compute queries and keys: "linear"
                       (identity), "sigmoid" or "tanh". "none" uses the states themselves as
                       queries and keys. Default: "linear"
    values:            "learned" (Wv h + bv) or "states" (h itself). Default: "learned"
    output_projection: project the concatenated heads to query_width with Wo. Default: True
    projection_layers: number of layers f(W x + b) that compute the queries, and number of such
                       layers that compute the keys. Each layer has its own W and b. Default: 1
    selection:         "softmax", "argmax" or "exact", see `attention_weights`. Default: "softmax"
    rotary:            rotate queries and keys by their positions. Default: False
    dropout:           dropout on the attention weights. Default: 0

    The gradient of the key bias bk is zero under three conditions: f is linear, `score.is_product`
    is True, and positions are not rotary. In this case bk adds the same value to all scores of a
    query, and the softmax does not depend on this value.
    """

    def __init__(
        self,
        query_width: int,
        heads: int = 1,
        *,
        key_width: int | None = None,
        width: int | None = None,
        score: AttentionScore | None = None,
        projection: Projection = "linear",
        projection_layers: int = 1,
        values: Values = "learned",
        output_projection: bool = True,
        selection: Selection = "softmax",
        rotary: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.query_width = query_width
        self.key_width = query_width if key_width is None else key_width
        self.width = query_width if width is None else width
        self.heads = heads
        self.projection: Projection = projection
        self.learned_values = values == "learned"
        self.score = DotScore("sqrt", self.query_head_width) if score is None else score
        self.selection: Selection = selection
        self.rotary = rotary
        self.dropout = dropout
        self.packed_projections = PackedLinearCache()
        is_projected = projection != "none"
        self.to_query = Linear(query_width, self.width) if is_projected else nn.Identity()
        self.to_key = Linear(self.key_width, self.width) if is_projected else nn.Identity()
        self.to_value = Linear(self.key_width, self.width) if self.learned_values else nn.Identity()
        self.output_projection = (
            Linear(self.value_width, query_width) if output_projection else nn.Identity()
        )
        self.context_width = query_width if output_projection else self.value_width
        """C: width of the context."""
        assert projection_layers == 1 or is_projected, (
            "states that are not projected have no layers"
        )
        further = range(projection_layers - 1)
        self.query_layers = nn.ModuleList(Linear(self.width, self.width) for _ in further)
        self.key_layers = nn.ModuleList(Linear(self.width, self.width) for _ in further)
        """The layers of queries and keys after `to_query` and `to_key`."""
        first = (self.to_query, self.to_key, self.to_value, self.output_projection)
        for part in (*first, *self.query_layers, *self.key_layers):
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)

    @property
    def query_head_width(self) -> int:
        """Width of the queries of one head."""
        return (self.query_width if self.projection == "none" else self.width) // self.heads

    @property
    def key_head_width(self) -> int:
        """Width of the keys of one head."""
        return (self.key_width if self.projection == "none" else self.width) // self.heads

    def unsupported_by_ctranslate2(self, name: str) -> list[str]:
        """List the reasons why CTranslate2 cannot run this attention. The list is empty if it can.

        name: the recipe section of the attention, such as "model.encoder.attention"
        """
        reasons = self.score.unsupported_by_ctranslate2(name)
        if self.projection != "linear":
            reasons.append(
                f"{name}.projection: only 'linear' is supported, not '{self.projection}'"
            )
        if not self.learned_values:
            reasons.append(f"{name}.values: only 'learned' is supported, not 'states'")
        if isinstance(self.output_projection, nn.Identity):
            reasons.append(
                f"{name}.output_projection: attention without an output projection is not supported"
            )
        if self.selection != "softmax":
            reasons.append(f"{name}.selection: only 'softmax' is supported")
        return reasons

    @property
    def value_width(self) -> int:
        """Total width of the values over all heads."""
        return self.width if self.learned_values else self.key_width

    def forward(
        self,
        queries: Tensor,
        keys: Tensor | None = None,
        mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> AttentionOutput:
        """Attend from queries (B, T, Dq) to keys (B, S, Dk).

        Return the context (B, T, C) and the attention weights (B, H, T, S).

        keys: states that are attended to. Default: the queries (self-attention)
        """
        memory = self.project_keys_values(queries if keys is None else keys)
        return self.attend_with_weights(queries, memory, mask, is_causal=is_causal)

    def project_keys_values(self, states: Tensor, position_ids: PositionIds = 0) -> KeysValues:
        """Compute keys and values (B, H, S, ·) from states (B, S, Dk).

        The keys are in the form that the attention score needs (see `AttentionScore.prepare`).
        """
        keys, values = self._project_keys_values(states, position_ids)
        return KeysValues(self.score.prepare(keys), values, self._source(states))

    def attend(
        self,
        states: Tensor,
        memory: KeysValues,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        position_ids: PositionIds = 0,
    ) -> Tensor:
        """Attend from states (B, T, Dq) to the keys in `memory`. Return contexts (B, T, C)."""
        queries = self._project_queries(states, position_ids)
        context = self._attend(queries, memory, mask, is_causal, position_ids)
        return self._report(context, states, memory, mask, is_causal, position_ids)

    def attend_self(
        self,
        states: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        position_ids: PositionIds = 0,
    ) -> Tensor:
        """Self-attention, where the states attend to themselves: (B, T, D) -> (B, T, C)"""
        if self.projection != "linear" or not self.learned_values:
            memory = self.project_keys_values(states, position_ids)
            return self.attend(states, memory, mask, is_causal=is_causal, position_ids=position_ids)
        projected = joined_linear(states, self.to_query, self.to_key, self.to_value)
        queries, keys, values = (self._split_heads(part) for part in projected)
        if self.rotary:
            queries, keys = rotate(queries, position_ids), rotate(keys, position_ids)
        memory = KeysValues(self.score.prepare(keys), values, self._source(states))
        context = self._attend(queries, memory, mask, is_causal, position_ids)
        return self._report(context, states, memory, mask, is_causal, position_ids)

    def attend_with_weights(
        self,
        states: Tensor,
        memory: KeysValues,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        position_ids: PositionIds = 0,
    ) -> AttentionOutput:
        """Attend from states (B, T, Dq) to the keys in `memory`.

        Return the context (B, T, C) and the attention weights (B, H, T, S).
        """
        queries = self._project_queries(states, position_ids)
        weights = self._weights(queries, memory, mask, is_causal, position_ids)
        dropped = F.dropout(weights, self.dropout, self.training)
        context = self._join_heads(dropped @ memory.values)
        context = self._report(context, states, memory, mask, is_causal, position_ids)
        return AttentionOutput(context, weights)

    def trace(
        self,
        states: Tensor,
        source: Tensor,
        mask: Tensor | None = None,
        position_ids: PositionIds = 0,
    ) -> AttentionTrace:
        """Attend from states (B, T, Dq) to a source (B, S, Dk). Return all intermediate results."""
        queries = self._project_queries(states, position_ids)
        keys, values = self._project_keys_values(source, 0)
        scores = self.score(queries, keys, position_ids)
        weights = attention_weights(scores, _broadcastable(mask), self.selection)
        read = weights @ values
        return AttentionTrace(queries, keys, scores, weights, values, read, self._join_heads(read))

    def step(self, states: Tensor, cache: Cache, projections: PackedLinear | None = None) -> Tensor:
        """Attend from one position to all positions up to it (self-attention): (R, D) -> (R, C)

        projections: a layer that computes queries, keys and values in one product, built by
                     `fast.multihead.joined_projections`. Default: None, three separate products
        """
        position = cache.position  # `append` increments it
        queries, new = self._project_position(states, position, projections)
        if (
            isinstance(cache, StaticCache)
            and self.is_plain_softmax
            and can_use_kernels(queries, new.values)
        ):
            context = self_attention_step(queries, new, cache, 1 / self.score.divisor)
        else:
            context = self._attend_once(queries, cache.append(new), cache.mask, position)
        return self.output_projection(context.flatten(1))

    def step_cross(
        self,
        states: Tensor,
        memory: KeysValues,
        mask: Tensor | None,
        need_weights: bool,
        position: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from the state (R, Dq) of each hypothesis to the source of the hypothesis.

        Return the context (R, C) and the attention weights (R, H, S). The weights are None if
        `need_weights` is False.

        Each of the B sources has R / B hypotheses, which share the keys of the source.

        mask:     (B, 1, 1, S) mask of the sources. If `need_weights` is False, it may be converted
                  with `fast.multihead.prepare_mask`, which is faster.
        position: () position of all queries (see `query_position`). Default: 0
        """
        rows, sources = states.shape[0], memory.keys.shape[0]
        position_ids = 0 if position is None else position.expand(1, rows // sources)  # (1, K)
        if need_weights:
            grouped = states.unflatten(0, (sources, -1))  # (B, K, Dq)
            context, weights = self.attend_with_weights(
                grouped, memory, mask, position_ids=position_ids
            )
            return context.flatten(0, 1), weights.transpose(1, 2).flatten(0, 1)
        assert not self.rotary, "positions of the source and of the target are not comparable"
        projected = self._activate(self.to_query(states), self.query_layers)
        queries = projected.view(rows, self.heads, -1)  # (R, H, D)
        if self.is_plain_softmax and mask is not None and can_use_kernels(queries, memory.values):
            context = cross_attention_step(queries, memory, mask, 1 / self.score.divisor)
            return self.output_projection(context.flatten(1)), None
        grouped = queries.view(sources, -1, self.heads, queries.shape[2]).transpose(1, 2)
        context = self._attend_once(grouped, memory, mask, position_ids)  # (B, H, K, Dv)
        context = context.transpose(1, 2)
        return self.output_projection(context.reshape(rows, -1)), None

    def query_position(self, position: int | Tensor, device: torch.device) -> Tensor | None:
        """Return the position as a 0-dim tensor for `step_cross`; None if the score ignores it.

        If the position were an int, torch.compile would compile a step again for each value.
        """
        if self.score.is_product:
            return None
        # A copy of a number to a GPU could not be captured in a CUDA graph; filling a tensor can.
        return position if isinstance(position, Tensor) else torch.full((), position, device=device)

    @property
    def is_plain_softmax(self) -> bool:
        """True if the attention weights are a softmax of dot products and are not dropped out.

        The fast versions of `step` and `step_cross` require this.
        """
        is_product = self.score.is_product and self.selection == "softmax"
        return is_product and not (self.training and self.dropout)

    def _source(self, states: Tensor) -> Tensor | None:
        """Return the states that keys and values are computed from if there is an observer."""
        return None if current_observer() is None else states

    def _report(
        self,
        context: Tensor,
        states: Tensor,
        memory: KeysValues,
        mask: Tensor | None,
        is_causal: bool,
        position_ids: PositionIds,
    ) -> Tensor:
        """Report the inputs of attention to the observer, if there is one.

        Return the context (B, T, C) to continue with: that of the observer, or the given one.
        """
        if memory.source is None or (observer := current_observer()) is None:
            return context
        observed = observer.attend(
            AttentionInputs(self, states, memory.source, mask, is_causal, position_ids)
        )
        return context if observed is None else observed

    def _project_queries(self, states: Tensor, position_ids: PositionIds) -> Tensor:
        """Compute the queries of each head: (B, T, Dq) -> (B, H, T, D)"""
        projected = self._activate(self.to_query(states), self.query_layers)
        queries = self._split_heads(projected)
        return rotate(queries, position_ids) if self.rotary else queries

    def _project_keys_values(
        self, states: Tensor, position_ids: PositionIds
    ) -> tuple[Tensor, Tensor]:
        """Compute keys and values (B, H, S, ·) from states (B, S, Dk).

        The caller must still convert the keys with `AttentionScore.prepare`.
        """
        if self.projection != "none" and self.learned_values:
            projected, values = joined_linear(states, self.to_key, self.to_value)
        else:
            projected, values = self.to_key(states), self.to_value(states)
        keys = self._split_heads(self._activate(projected, self.key_layers))
        return rotate(keys, position_ids) if self.rotary else keys, self._split_heads(values)

    def _project_position(
        self, states: Tensor, position: PositionIds, projections: PackedLinear | None
    ) -> tuple[Tensor, KeysValues]:
        """Compute queries, keys and values (R, H, 1, ·) of one position from states (R, Dq)."""
        if projections is None or torch.compiler.is_compiling():  # a compiler packs weights itself
            query, key, value = self.to_query(states), self.to_key(states), self.to_value(states)
        else:
            query, key, value = projections(states).chunk(3, dim=1)
        query, key = self._activate(query, self.query_layers), self._activate(key, self.key_layers)
        shape = (len(states), self.heads, 1, -1)
        queries, keys, values = (part.reshape(shape) for part in (query, key, value))
        if self.rotary:
            queries, keys = rotate(queries, position), rotate(keys, position)
        return queries, KeysValues(self.score.prepare(keys), values)

    def _attend(
        self,
        queries: Tensor,
        memory: KeysValues,
        mask: Tensor | None,
        is_causal: bool,
        position_ids: PositionIds,
    ) -> Tensor:
        """Compute the context of each query: (B, H, T, D) -> (B, T, C)

        torch's fused kernel is used if it supports this attention.
        """
        dropout = self.dropout if self.training else 0.0
        # The fused kernel takes either a mask or the causal flag.
        one_mask = mask is None or not is_causal
        if self.score.is_product and self.selection == "softmax" and one_mask:
            context = F.scaled_dot_product_attention(
                queries,
                memory.keys,
                memory.values,
                attn_mask=_broadcastable(mask),
                dropout_p=dropout,
                is_causal=is_causal,
                scale=1 / self.score.divisor,
            )
        else:
            weights = self._weights(queries, memory, mask, is_causal, position_ids)
            context = F.dropout(weights, dropout) @ memory.values
        return self._join_heads(context)

    def _attend_once(
        self,
        queries: Tensor,
        memory: KeysValues,
        mask: Tensor | None,
        position_ids: PositionIds = 0,
    ) -> Tensor:
        """Compute the context of each head at one decoding step: (B, H, T, D) -> (B, H, T, Dv)

        The T queries of a batch element are those of T hypotheses at the same target position.
        """
        if isinstance(memory, RepeatedKeysValues):
            return memory.attend(queries)
        # Not on a GPU, where torch would plan the fused kernel again for each new number of keys.
        if self.is_plain_softmax and not queries.is_cuda:
            return F.scaled_dot_product_attention(
                queries, memory.keys, memory.values, attn_mask=mask, scale=1 / self.score.divisor
            )
        scores = self.score.compare(queries, memory.keys, position_ids)
        weights = attention_weights(scores, mask, self.selection)
        return F.dropout(weights, self.dropout, self.training) @ memory.values

    def _weights(
        self,
        queries: Tensor,
        memory: KeysValues,
        mask: Tensor | None,
        is_causal: bool,
        position_ids: PositionIds,
    ) -> Tensor:
        """Compute the attention weights of the queries: (B, H, T, D) -> (B, H, T, S)"""
        scores = self.score.compare(queries, memory.keys, position_ids)
        mask = _broadcastable(mask)
        if is_causal:
            causal = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
            mask = causal if mask is None else mask & causal
        return attention_weights(scores, mask, self.selection)

    def _activate(self, projected: Tensor, further: nn.ModuleList) -> Tensor:
        """Compute queries or keys from the output of their first linear layer.

        Apply the activation, then each layer of `further`, each followed by the activation.
        """
        activated = self._activation(projected)
        for layer in further:
            activated = self._activation(layer(activated))
        return activated

    def _activation(self, projected: Tensor) -> Tensor:
        """Apply the activation f of queries and keys: sigmoid, tanh or the identity."""
        match self.projection:
            case "sigmoid":
                return projected.sigmoid()
            case "tanh":
                return projected.tanh()
            case "none" | "linear":
                return projected

    def _split_heads(self, states: Tensor) -> Tensor:
        """Split vectors into one part per head: (B, T, H·D) -> (B, H, T, D)"""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _join_heads(self, context: Tensor) -> Tensor:
        """Concatenate the heads and apply the output projection: (B, H, T, D) -> (B, T, C)"""
        return self.output_projection(context.transpose(1, 2).flatten(2))


@dataclass(frozen=True)
class AttentionFormulas:
    """The formulas of one attention head. Indices of heads and positions are counted from 0."""

    attention: MultiHeadAttention
    head: int

    @property
    def is_single(self) -> bool:
        """True if the output of the head is the context: one head and no output projection."""
        return self.attention.heads == 1 and not self._projects_output

    @property
    def _projects_output(self) -> bool:
        return not isinstance(self.attention.output_projection, nn.Identity)

    def query(self, state: str, position: int) -> str:
        """Formula of the query.

        state:    symbol of the state from which the query is computed
        position: position of the query. Only rotary attention uses it.
        """
        attention = self.attention
        projected = self._layers([attention.to_query, *attention.query_layers], "q", state)
        formula = self._slice(projected, attention.query_head_width)
        return f"rotated by {position} × ω, {formula}" if attention.rotary else formula

    def key(self, state: str) -> str:
        """Formula of the keys. `state` is the symbol of the source states."""
        attention = self.attention
        projected = self._layers([attention.to_key, *attention.key_layers], "k", state)
        formula = self._slice(projected, attention.key_head_width)
        return f"rotated by the position × ω, {formula}" if attention.rotary else formula

    def value(self, state: str) -> str:
        """Formula of the values. `state` is the symbol of the source states."""
        projected = _projected(self.attention.to_value, "v", state)
        return self._slice(projected, self.attention.value_width // self.attention.heads)

    @property
    def weights(self) -> str:
        """Formula that computes the attention weights from the scores e."""
        score = self.attention.score
        return {
            "softmax": "softmax(e)",
            "argmax": f"1 for the {score.best_key}, else 0",
            "exact": "1 for the first key with e = 1, else 0",
        }[self.attention.selection]

    @property
    def context(self) -> str:
        """Formula that computes the context vector."""
        if self.is_single:
            return "Σ α v"
        heads = self.attention.heads
        outputs = {1: "r", 2: "[r₁; r₂]"}.get(heads, f"[r₁; …; {indexed('r', heads)}]")
        return f"Wo {outputs} + bo" if self._projects_output else outputs

    @property
    def score_gradient(self) -> str:
        """Formula of the gradient at the scores e, given the gradient at the weights α."""
        is_soft = self.attention.selection == "softmax"
        return "(diag(α) - α αᵀ) ∂L/∂α" if is_soft else "0"

    def head_gradient(self, context: str) -> str:
        """Formula of the gradient at the output of the head, for example (Woᵀ ∂L/∂a₃)[1…16].

        context: symbol of the gradient at the context vector, for example ∂L/∂a₃
        """
        formula = f"Woᵀ {context}" if self._projects_output else context
        return self._slice(formula, self.attention.value_width // self.attention.heads)

    def _layers(self, layers: list[nn.Module], letter: str, state: str) -> str:
        """Formula of queries or keys, for example σ(Wq s + bq).

        If there are two projection layers, the formula is σ(Wq₂ σ(Wq₁ s + bq₁) + bq₂).
        """
        function = {"sigmoid": "σ", "tanh": "tanh"}.get(self.attention.projection)
        formula = state
        for number, layer in enumerate(layers, start=1):
            name = letter if len(layers) == 1 else indexed(letter, number)
            formula = _projected(layer, name, formula)
            formula = f"{function}({formula})" if function else formula
        return formula

    def _slice(self, formula: str, width: int) -> str:
        """Append the range of dimensions that belong to the head: head 0 of width 16 -> [1…16]

        If there is only one head, the formula is returned unchanged.
        """
        if self.attention.heads == 1:
            return formula
        is_single_term = " " not in formula or formula.endswith(")")
        inner = formula if is_single_term else f"({formula})"
        return f"{inner}[{self.head * width + 1}…{(self.head + 1) * width}]"


def _projected(module: nn.Module, letter: str, state: str) -> str:
    """Formula of a projected state, for example Wq s + bq. A bias of zero is omitted.

    If the module is not a linear projection, the formula is the symbol of the state.
    """
    if not isinstance(module, nn.Linear):
        return state
    bias = f" + b{letter}" if bool(module.bias.any()) else ""
    return f"W{letter} {state}{bias}"


def _broadcastable(mask: Tensor | None) -> Tensor | None:
    """Return a mask (B, S) as (B, 1, 1, S), and other masks unchanged."""
    return mask[:, None, None] if mask is not None and mask.dim() == 2 else mask
