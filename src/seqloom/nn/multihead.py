"""Many heads of the same attention.

Heads are slices: H heads over a width D work on D/H numbers each, in parallel, and their contexts
stand side by side again at the end.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.attention import Score, Selection, weigh
from seqloom.nn.cache import KeysValues, Past, StaticCache
from seqloom.nn.kernels import can_run, look_across, look_back
from seqloom.nn.linear import Kept, Layout, Linear, linear
from seqloom.nn.look import Look
from seqloom.nn.looking import InTurn, in_turn
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


def map_together(states: Tensor, *maps: nn.Module) -> tuple[Tensor, ...]:
    """Several linear maps of the same states: one product, which is faster than several."""
    parts = [part for part in maps if isinstance(part, nn.Linear)]
    assert len(parts) == len(maps)
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat([part.bias for part in parts])
    return linear(states, weight, bias).split([part.out_features for part in parts], dim=-1)


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
        self._kept = Kept()
        projected = plan.projection != "none"
        self.to_query = Linear(plan.query_width, plan.width) if projected else nn.Identity()
        self.to_key = Linear(plan.key_width, plan.width) if projected else nn.Identity()
        self.to_value = Linear(plan.key_width, plan.width) if plan.learned_values else nn.Identity()
        self.merge = (
            nn.Identity()
            if plan.merged_width is None
            else Linear(plan.value_width, plan.merged_width)
        )
        for part in (self.to_query, self.to_key, self.to_value, self.merge):
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)

    def keys_values(self, states: Tensor, place: Place = 0) -> KeysValues:
        """(B, S, Dk) -> what can be read at these positions."""
        keys, values = self._keys_and_values(states, place)
        return KeysValues(self.score.prepare(keys), values)

    def _keys_and_values(self, states: Tensor, place: Place) -> tuple[Tensor, Tensor]:
        """(B, S, Dk) -> keys that no score has prepared yet and values, (B, H, S, ·) each."""
        if self.plan.projection != "none" and self.plan.learned_values:
            mapped, values = map_together(states, self.to_key, self.to_value)
        else:
            mapped, values = self.to_key(states), self.to_value(states)
        keys = self._split(self._bend(mapped))
        return rotate(keys, place) if self.rotary else keys, self._split(values)

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
        if self.score.is_product and self.selection == "softmax":
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

    def lay_open(self, states: Tensor, source: Tensor, mask: Tensor, place: Place = 0) -> Look:
        """As `look` at the states of a source (B, S, Dk), and everything on the way."""
        queries = self._queries(states, place)
        keys, values = self._keys_and_values(source, 0)
        scores = self.score(queries, keys)
        weights = weigh(scores, mask, self.selection)
        read = weights @ values
        return Look(queries, keys, scores, weights, values, read, self._join(read))

    def look_once(self, states: Tensor, memory: KeysValues, mask: Tensor) -> tuple[Tensor, Tensor]:
        """One query for each hypothesis: (R, Dq) -> (R, C), (R, H, S).

        The K hypotheses of a source are K queries to the same keys, so the keys need not be
        copied for each of them.
        """
        sources = memory.keys.shape[0]
        context, weights = self.look(states.unflatten(0, (sources, -1)), memory, mask)
        return context.flatten(0, 1), weights.transpose(1, 2).flatten(0, 1)

    def joined(self, anew: bool) -> Layout | None:
        """Queries, keys and values of the same states as one map.

        None where they are not three linear maps; and where their weights cannot be kept side by
        side, unless they are to be put there anew: that pays where a product is dear to ask for.
        """
        maps = [self.to_query, self.to_key, self.to_value]
        parts = [part for part in maps if isinstance(part, nn.Linear)]
        if len(parts) < len(maps):
            return None
        return self._kept.layout(parts) or (Layout.of(parts, turn=False) if anew else None)

    def step(self, states: Tensor, past: Past, joined: Layout | None = None) -> Tensor:
        """One position looks at itself and all before it: (R, D) -> (R, C)."""
        queries, new = self._one_position(states, past.position, joined)
        if isinstance(past, StaticCache) and self._fused and can_run(queries, new.values):
            context = look_back(queries, new, past, 1 / self.score.divisor)
        else:
            context = self._context(queries, past.append(new), past.mask)
        return self.merge(context.flatten(1))

    def step_across(
        self, states: Tensor, memory: KeysValues, mask: Tensor | None, need_attention: bool
    ) -> tuple[Tensor, Tensor | None]:
        """One query for each hypothesis: (R, Dq) -> (R, C), and (R, H, S) if `need_attention`."""
        if need_attention:
            assert mask is not None
            return self.look_once(states, memory, mask)
        rows, heads, sources = states.shape[0], self.plan.heads, memory.keys.shape[0]
        queries = self._bend(self.to_query(states)).view(rows, heads, -1)  # (R, H, D)
        assert not self.rotary, "positions of the source and of the target do not compare"
        if self._fused and mask is not None and can_run(queries, memory.values):
            context = look_across(queries, memory, mask, 1 / self.score.divisor)
            return self.merge(context.flatten(1)), None
        # The K hypotheses of a source are K queries to the same keys: nothing is copied.
        grouped = queries.view(sources, -1, heads, queries.shape[2]).transpose(1, 2)  # (B, H, K, D)
        context = self._context(grouped, memory, mask).transpose(1, 2)
        return self.merge(context.reshape(rows, -1)), None

    def in_turn(self, memory: KeysValues, mask: Tensor, looks: int) -> KeysValues:
        """`memory` for so many calls of `step_across`, which share their way back on a CPU."""
        if not self._fused:
            return memory
        visible = self.visible(mask, memory.keys.dtype)
        return in_turn(memory, visible, 1 / self.score.divisor, looks)

    def visible(self, mask: Tensor, dtype: torch.dtype) -> Tensor | None:
        """A mask (B, 1, 1, S) as `step_across` likes it best, if nobody watches.

        None if there is nothing to hide; a fused kernel wants something to add to the scores, and
        would make it from the mask at every step.
        """
        if mask.is_cuda or not self._fused:
            return mask
        if bool(mask.all()):
            return None
        nothing = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
        return nothing.masked_fill_(~mask, float("-inf"))

    @property
    def _fused(self) -> bool:
        """Is it what fused kernels compute: the softmax of dot products, and no dropout?"""
        plain = self.score.is_product and self.selection == "softmax"
        return plain and not (self.training and self.dropout)

    def _one_position(
        self, states: Tensor, position: Place, joined: Layout | None
    ) -> tuple[Tensor, KeysValues]:
        """(R, D) -> queries, keys and values of the position, (R, H, 1, D) each."""
        if joined is None or torch.compiler.is_compiling():  # which lays out weights, not layouts
            parts = (self.to_query(states), self.to_key(states), self.to_value(states))
        else:
            one, two, three = joined(states).chunk(3, dim=1)
            parts = one, two, three
        shape = (len(states), self.plan.heads, 1, -1)
        queries, keys, values = (part.reshape(shape) for part in parts)
        queries, keys = self._bend(queries), self._bend(keys)
        if self.rotary:
            queries, keys = rotate(queries, position), rotate(keys, position)
        return queries, KeysValues(self.score.prepare(keys), values)

    def _context(self, queries: Tensor, memory: KeysValues, mask: Tensor | None) -> Tensor:
        """What queries read that may see all that the mask lets them; None: everything."""
        if isinstance(memory, InTurn):
            return memory.look(queries)
        if self._fused and not queries.is_cuda:  # there each new length would be planned anew
            return F.scaled_dot_product_attention(
                queries, memory.keys, memory.values, attn_mask=mask, scale=1 / self.score.divisor
            )
        scores = self.score.compare(queries, memory.keys)
        visible = scores.new_ones((), dtype=torch.bool) if mask is None else mask
        weights = weigh(scores, visible, self.selection)
        return F.dropout(weights, self.dropout, self.training) @ memory.values

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
