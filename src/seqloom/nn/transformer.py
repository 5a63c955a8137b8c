"""Transformer layers: attention and a feed-forward network, each with a way around it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.cache import KeysValues, Past
from seqloom.nn.dropout import Dropout
from seqloom.nn.linear import Layout, Linear
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.positions import Place

Norm = Literal["pre", "post"]


@dataclass(frozen=True)
class Across:
    """The source as a decoder layer sees it, and whether to return the attention weights.

    mask: (B, 1, 1, S), or what `MultiHeadAttention.visible` makes of it
    """

    memory: KeysValues
    mask: Tensor | None
    need_attention: bool


class Residual(nn.Module):
    """The way around a sublayer.

    pre:  x + f(norm(x))     the stream is never touched, so gradients run straight through
    post: norm(x + f(x))     as in the paper

    gap: there is no way around: f(norm(x)), or norm(f(x))
    """

    def __init__(self, width: int, norm: Norm, dropout: float, gap: bool = False) -> None:
        super().__init__()
        self.gap = gap
        self.norm = nn.LayerNorm(width)
        self.first = norm == "pre"
        self.dropout = Dropout(dropout)

    def forward(self, stream: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(…, D) -> (…, D)"""
        if self.gap:
            inner = sublayer(self.norm(stream) if self.first else stream)
            return self.dropout(inner) if self.first else self.norm(self.dropout(inner))
        if self.first:
            return stream + self.dropout(sublayer(self.norm(stream)))
        return self.norm(stream + self.dropout(sublayer(stream)))


class FeedForward(nn.Module):
    """W2 f(W1 x + b1) + b2, at each position alone."""

    def __init__(
        self, width: int, inner: int, activation: Literal["relu", "gelu"], dropout: float
    ) -> None:
        super().__init__()
        self.widen = Linear(width, inner)
        self.narrow = Linear(inner, width)
        self.activation = activation
        self.dropout = Dropout(dropout)
        for part in (self.widen, self.narrow):
            nn.init.xavier_uniform_(part.weight)
            nn.init.zeros_(part.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(…, D) -> (…, D)"""
        inner = self.widen(states.flatten(0, -2))
        # In place: nobody else needs what is below zero, and it is the widest tensor of a layer.
        # It has two dimensions, for what is changed in place is dear to go back through in a view.
        bent = torch.relu_(inner) if self.activation == "relu" else F.gelu(inner)
        return self.narrow(self.dropout(bent)).view(states.shape)


class EncoderLayer(nn.Module):
    """Every position looks at every other, then thinks for itself.

    gap: a position keeps nothing of itself but what it sees of itself when it looks
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feedforward: FeedForward,
        norm: Norm,
        dropout: float,
        gap: bool = False,
    ) -> None:
        super().__init__()
        width = attention.plan.query_width
        self.attention = attention
        self.feedforward = feedforward
        self.around_attention = Residual(width, norm, dropout, gap)
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
        self, stream: Tensor, past: Past, joined: Layout | None, across: Across | None
    ) -> tuple[Tensor, Tensor | None]:
        """One position: (R, D) -> (R, D), and where it looked in the source (R, H, S)."""
        stream = self.around_attention(
            stream, lambda states: self.attention.step(states, past, joined)
        )
        seen: list[Tensor | None] = [None]
        cross, around = self.cross_attention, self.around_cross
        if cross is not None and around is not None and across is not None:

            def look_across(states: Tensor) -> Tensor:
                context, seen[0] = cross.step_across(
                    states, across.memory, across.mask, across.need_attention
                )
                return context

            stream = around(stream, look_across)
        return self.around_feedforward(stream, self.feedforward), seen[0]
