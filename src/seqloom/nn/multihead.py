"""Many heads of the same attention, and what is remembered of the past while decoding.

Heads are slices: H heads over a width D work on D/H numbers each, in parallel, and their contexts
stand side by side again at the end.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.attention import DotScore, Score, Selection, weigh
from seqloom.nn.positions import Place, rotate

Projection = Literal["none", "linear", "sigmoid", "tanh"]


@dataclass(frozen=True)
class AttentionPlan:
    """The widths of an attention and the maps in front of and behind it."""

    query_width: int
    key_width: int
    width: int
    """Of projected queries and keys and of learned values, all heads together."""
    heads: int
    projection: Projection
    learned_values: bool
    merged_width: int | None
    """Width after a last linear map over all heads; None leaves the heads side by side."""

    @property
    def query_head(self) -> int:
        """Width of one head's queries, as the score meets them."""
        return (self.query_width if self.projection == "none" else self.width) // self.heads

    @property
    def key_head(self) -> int:
        """Width of one head's keys, as the score meets them."""
        return (self.key_width if self.projection == "none" else self.width) // self.heads

    @property
    def value_width(self) -> int:
        """Width of the values, all heads together."""
        return self.width if self.learned_values else self.key_width

    @property
    def context_width(self) -> int:
        """C: width of what is read."""
        return self.merged_width or self.value_width


@dataclass(frozen=True)
class KeysValues:
    """What can be read: prepared keys (B, H, S, ·) and values (B, H, S, Dv)."""

    keys: Tensor
    values: Tensor


class KeyValueCache:
    """Keys and values of all positions so far, in memory reserved once: (capacity, R, H, D).

    Positions come first, so that the filled part is one block that can be copied in one go when
    hypotheses change places.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self.store: tuple[Tensor, Tensor] | None = None
        self.spare: tuple[Tensor, Tensor] | None = None

    def append(self, new: KeysValues) -> KeysValues:
        """Take in one position: (R, H, 1, D) each. Returns all positions so far, as views."""
        if self.store is None:
            self.store = (self._reserve(new.keys), self._reserve(new.values))
        assert self.length < self.capacity, "the cache was reserved for fewer steps"
        for store, one in zip(self.store, (new.keys, new.values), strict=True):
            store[self.length] = one.squeeze(2)
        self.length += 1
        keys, values = (store[: self.length].permute(1, 2, 0, 3) for store in self.store)
        return KeysValues(keys, values)

    def _reserve(self, example: Tensor) -> Tensor:
        rows, heads, _, width = example.shape
        return example.new_empty(self.capacity, rows, heads, width)

    def select(self, rows: Tensor) -> "KeyValueCache":
        """Keep these rows. The old and the new order take turns in two blocks of memory."""
        if self.store is None:
            return self
        if self.spare is None or self.spare[0].shape[1] != len(rows):
            keys, values = self.store
            self.spare = (
                keys.new_empty(self.capacity, len(rows), *keys.shape[2:]),
                values.new_empty(self.capacity, len(rows), *values.shape[2:]),
            )
        for store, spare in zip(self.store, self.spare, strict=True):
            torch.index_select(store[: self.length], 1, rows, out=spare[: self.length])
        self.store, self.spare = self.spare, self.store
        return self


def map_together(states: Tensor, *maps: nn.Module) -> tuple[Tensor, ...]:
    """Several linear maps of the same states: one product, which is faster than several."""
    linear = [part for part in maps if isinstance(part, nn.Linear)]
    assert len(linear) == len(maps)
    weight = torch.cat([part.weight for part in linear])
    bias = torch.cat([part.bias for part in linear])
    return F.linear(states, weight, bias).split([part.out_features for part in linear], dim=-1)


class MultiHeadAttention(nn.Module):
    """Queries look at keys and read values, H times in parallel.

        q = f(Wq s + bq)    k = f(Wk h + bk)    v = Wv h + bv    (or the states themselves)

    With f linear and a score that is a product, bk adds the same to all scores of a query and
    the softmax takes it away again: it never learns, and is there for f that bend.
    """

    def __init__(
        self,
        plan: AttentionPlan,
        score: Score,
        selection: Selection = "softmax",
        rotary: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.plan = plan
        self.score = score
        self.selection: Selection = selection
        self.rotary = rotary
        self.dropout = dropout
        projected = plan.projection != "none"
        self.to_query = nn.Linear(plan.query_width, plan.width) if projected else nn.Identity()
        self.to_key = nn.Linear(plan.key_width, plan.width) if projected else nn.Identity()
        self.to_value = (
            nn.Linear(plan.key_width, plan.width) if plan.learned_values else nn.Identity()
        )
        self.merge = (
            nn.Identity()
            if plan.merged_width is None
            else nn.Linear(plan.value_width, plan.merged_width)
        )
        for part in (self.to_query, self.to_key, self.to_value, self.merge):
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)

    def keys_values(self, states: Tensor, place: Place = 0) -> KeysValues:
        """(B, S, Dk) -> what can be read at these positions."""
        if self.plan.projection != "none" and self.plan.learned_values:
            mapped, values = map_together(states, self.to_key, self.to_value)
        else:
            mapped, values = self.to_key(states), self.to_value(states)
        keys = self._split(self._bend(mapped))
        if self.rotary:
            keys = rotate(keys, place)
        return KeysValues(self.score.prepare(keys), self._split(values))

    def read_self(self, states: Tensor, mask: Tensor | None, place: Place = 0) -> Tensor:
        """(B, T, D) -> (B, T, C): `read` where the states themselves are what can be read."""
        if self.plan.projection != "linear" or not self.plan.learned_values:
            return self.read(states, self.keys_values(states, place), mask, place)
        mapped = map_together(states, self.to_query, self.to_key, self.to_value)
        queries, keys, values = (self._split(part) for part in mapped)
        if self.rotary:
            queries, keys = rotate(queries, place), rotate(keys, place)
        return self._read(queries, KeysValues(self.score.prepare(keys), values), mask)

    def read(
        self, states: Tensor, memory: KeysValues, mask: Tensor | None, place: Place = 0
    ) -> Tensor:
        """(B, T, Dq) -> (B, T, C): the context of every query. mask None: look only backwards."""
        return self._read(self._queries(states, place), memory, mask)

    def _read(self, queries: Tensor, memory: KeysValues, mask: Tensor | None) -> Tensor:
        """By the fused kernel, where that computes the same thing: (B, H, T, D) -> (B, T, C)"""
        dropout = self.dropout if self.training else 0.0
        if isinstance(self.score, DotScore) and self.selection == "softmax":
            context = F.scaled_dot_product_attention(
                queries,
                memory.keys,
                memory.values,
                attn_mask=mask,
                dropout_p=dropout,
                is_causal=mask is None,
                scale=1 / self.score.divisor,
            )
        else:
            context = F.dropout(self._weights(queries, memory, mask), dropout) @ memory.values
        return self._join(context)

    def look(
        self, states: Tensor, memory: KeysValues, mask: Tensor | None, place: Place = 0
    ) -> tuple[Tensor, Tensor]:
        """As `read`, and the weights too: (B, T, C), (B, H, T, S)."""
        weights = self._weights(self._queries(states, place), memory, mask)
        dropped = F.dropout(weights, self.dropout, self.training)
        return self._join(dropped @ memory.values), weights

    def look_once(self, states: Tensor, memory: KeysValues, mask: Tensor) -> tuple[Tensor, Tensor]:
        """One query for each hypothesis: (R, Dq) -> (R, C), (R, H, S).

        The K hypotheses of a source are K queries to the same keys, so the keys need not be
        copied for each of them.
        """
        sources = memory.keys.shape[0]
        context, weights = self.look(states.unflatten(0, (sources, -1)), memory, mask)
        return context.flatten(0, 1), weights.transpose(1, 2).flatten(0, 1)

    def _queries(self, states: Tensor, place: Place) -> Tensor:
        queries = self._split(self._bend(self.to_query(states)))
        return rotate(queries, place) if self.rotary else queries

    def _weights(self, queries: Tensor, memory: KeysValues, mask: Tensor | None) -> Tensor:
        scores = self.score.compare(queries, memory.keys)  # (B, H, T, S)
        if mask is None:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        return weigh(scores, mask, self.selection)

    def _bend(self, projected: Tensor) -> Tensor:
        match self.plan.projection:
            case "sigmoid":
                return projected.sigmoid()
            case "tanh":
                return projected.tanh()
            case "none" | "linear":
                return projected

    def _split(self, states: Tensor) -> Tensor:
        """(B, T, H·D) -> (B, H, T, D)"""
        return states.unflatten(-1, (self.plan.heads, -1)).transpose(1, 2)

    def _join(self, context: Tensor) -> Tensor:
        """(B, H, T, D) -> (B, T, C)"""
        return self.merge(context.transpose(1, 2).flatten(2))
