"""Transformer layers: attention and a feed-forward network, each with a way around it."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.dropout import Dropout
from seqloom.nn.multihead import KeysValues, KeyValueCache, MultiHeadAttention
from seqloom.nn.positions import Place

Norm = Literal["pre", "post"]


class Residual(nn.Module):
    """The way around a sublayer.

    pre:  x + f(norm(x))     the stream is never touched, so gradients run straight through
    post: norm(x + f(x))     as in the paper
    """

    def __init__(self, width: int, norm: Norm, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = norm == "pre"
        self.dropout = Dropout(dropout)

    def forward(self, stream: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(…, D) -> (…, D)"""
        if self.first:
            return stream + self.dropout(sublayer(self.norm(stream)))
        return self.norm(stream + self.dropout(sublayer(stream)))


class FeedForward(nn.Module):
    """W2 f(W1 x + b1) + b2, at each position alone."""

    def __init__(
        self, width: int, inner: int, activation: Literal["relu", "gelu"], dropout: float
    ) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)
        self.activation = activation
        self.dropout = Dropout(dropout)
        for part in (self.widen, self.narrow):
            nn.init.xavier_uniform_(part.weight)
            nn.init.zeros_(part.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(…, D) -> (…, D)"""
        bend = F.relu if self.activation == "relu" else F.gelu
        return self.narrow(self.dropout(bend(self.widen(states))))


class EncoderLayer(nn.Module):
    """Every position looks at every other, then thinks for itself."""

    def __init__(
        self, attention: MultiHeadAttention, feedforward: FeedForward, norm: Norm, dropout: float
    ) -> None:
        super().__init__()
        width = attention.plan.query_width
        self.attention = attention
        self.feedforward = feedforward
        self.around_attention = Residual(width, norm, dropout)
        self.around_feedforward = Residual(width, norm, dropout)

    def forward(self, stream: Tensor, mask: Tensor, place: Place = 0) -> Tensor:
        """(B, S, D), mask broadcast to (B, H, S, S) -> (B, S, D)"""

        def look(states: Tensor) -> Tensor:
            return self.attention.read_self(states, mask, place)

        return self.around_feedforward(self.around_attention(stream, look), self.feedforward)


class DecoderLayer(nn.Module):
    """Every position looks back at the output so far, then at the source, then thinks."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention | None,
        feedforward: FeedForward,
        norm: Norm,
        dropout: float,
    ) -> None:
        super().__init__()
        width = attention.plan.query_width
        self.attention = attention
        self.cross_attention = cross_attention
        self.feedforward = feedforward
        self.around_attention = Residual(width, norm, dropout)
        self.around_cross = None if cross_attention is None else Residual(width, norm, dropout)
        self.around_feedforward = Residual(width, norm, dropout)

    def forward(
        self,
        stream: Tensor,
        memory: KeysValues | None,
        mask: Tensor,
        back: Tensor | None = None,
        place: Place = 0,
    ) -> Tensor:
        """All positions at once, each seeing only those before it: (B, T, D) -> (B, T, D)

        mask: broadcast to (B, H, T, S), what may be seen of the source
        back: broadcast to (B, H, T, T), what may be seen of the output; None: all that is before
        """

        def look_back(states: Tensor) -> Tensor:
            return self.attention.read_self(states, back, place)

        stream = self.around_attention(stream, look_back)
        cross, around = self.cross_attention, self.around_cross
        if cross is not None and around is not None and memory is not None:
            stream = around(stream, lambda states: cross.read(states, memory, mask))
        return self.around_feedforward(stream, self.feedforward)

    def step(
        self, stream: Tensor, cache: KeyValueCache, memory: KeysValues | None, mask: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """One position: (R, D) -> (R, D), and where it looked in the source (R, H, S)."""
        seen: list[Tensor] = []

        def look_back(states: Tensor) -> Tensor:
            here = states.unsqueeze(1)  # (R, 1, D)
            position = cache.length
            past = cache.append(self.attention.keys_values(here, position))
            # The last query may see everything so far: with one query, no mask is needed.
            everything = mask.new_ones(())
            context, _ = self.attention.look(here, past, everything, position)
            return context.squeeze(1)

        stream = self.around_attention(stream, look_back)
        cross, around = self.cross_attention, self.around_cross
        if cross is not None and around is not None and memory is not None:

            def look_across(states: Tensor) -> Tensor:
                context, weights = cross.look_once(states, memory, mask)
                seen.append(weights)
                return context

            stream = around(stream, look_across)
        stream = self.around_feedforward(stream, self.feedforward)
        return stream, (seen[0] if seen else None)
