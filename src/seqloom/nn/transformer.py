"""Transformer layers: attention and a feed-forward network, each with a residual connection."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.dropout import Dropout
from seqloom.nn.fast.dispatch import can_fuse_relu
from seqloom.nn.fast.kernels import LayerNorm
from seqloom.nn.fast.linear import Linear, PackedLinear, linear_relu
from seqloom.nn.key_value_cache import Cache, KeysValues
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import observe
from seqloom.nn.positions import PositionIds

Norm = Literal["pre", "post"]
Activation = Literal["relu", "gelu", "gelu-tanh", "silu"]


@dataclass(frozen=True)
class CrossAttentionInput:
    """The inputs of a decoder layer for one step of cross-attention.

    memory:         keys and values of the source
    mask:           (B, 1, 1, S), True where a source position is visible. It may also have the
                    faster form that `fast.multihead.prepare_mask` returns.
    need_attention: True if the layer should return the attention weights
    """

    memory: KeysValues
    mask: Tensor | None
    need_attention: bool


class Residual(nn.Module):
    """A residual connection around a sublayer f, with layer normalisation.

    pre:  x + f(norm(x))     Xiong et al. 2020; gradients pass through the sum unchanged
    post: norm(x + f(x))     Vaswani et al. 2017

    skip: if False, x is not added. The result is f(norm(x)) for "pre" and norm(f(x)) for "post".
          Default: True
    """

    def __init__(self, width: int, norm: Norm, dropout: float, skip: bool = True) -> None:
        super().__init__()
        self.skip = skip
        self.norm = LayerNorm(width)
        self.pre_norm = norm == "pre"
        self.dropout = Dropout(dropout)

    def forward(self, stream: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sublayer with normalisation and residual connection: (…, D) -> (…, D)"""
        inner = self.dropout(sublayer(self.norm(stream) if self.pre_norm else stream))
        total = stream + inner if self.skip else inner
        return observe(self, "stream", total if self.pre_norm else self.norm(total))

    def formula(self, stream: str, inner: str) -> str:
        """Formula of the result, given the symbol of the stream and the result of the sublayer."""
        total = f"{stream} + {inner}" if self.skip else inner
        return total if self.pre_norm else f"norm({total})"

    def input_formula(self, stream: str) -> str:
        """Formula of the input of the sublayer."""
        return f"norm({stream})" if self.pre_norm else stream


def activate(inner: Tensor, activation: Activation) -> Tensor:
    """Apply an activation to a two-dimensional tensor, which may be changed in place.

    relu:      max(0, x)
    gelu:      x Φ(x), where Φ is the distribution function of the normal distribution
    gelu-tanh: an approximation of gelu with tanh
    silu:      x σ(x), where σ is the logistic function; also called swish
    """
    match activation:
        case "relu":
            # ReLU runs in place to save memory: `inner` is the widest tensor of a layer, and its
            # values before ReLU are not used again. `inner` is two-dimensional and not a view,
            # because backward through a view that was changed in place is slow.
            return torch.relu_(inner)
        case "gelu":
            return F.gelu(inner)
        case "gelu-tanh":
            return F.gelu(inner, approximate="tanh")
        case "silu":
            return F.silu(inner)
        case _:
            assert_never(activation)


class FeedForward(nn.Module):
    """Computes W2 f(W1 x + b1) + b2 for the vector x of each position.

    width:      width of x and of the result
    inner:      width of the hidden layer, f(W1 x + b1)
    activation: the function f, see `activate`
    """

    def __init__(self, width: int, inner: int, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.widen = Linear(width, inner)
        self.narrow = Linear(inner, width)
        self.activation: Activation = activation
        self.dropout = Dropout(dropout)
        for part in (self.widen, self.narrow):
            nn.init.xavier_uniform_(part.weight)
            nn.init.zeros_(part.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Apply the feed-forward network to each vector: (…, D) -> (…, D)"""
        rows = states.flatten(0, -2)
        if self.activation == "relu" and can_fuse_relu(rows, self.widen.weight):
            activated = linear_relu(rows, self.widen.weight, self.widen.bias)
        else:
            activated = activate(self.widen(rows), self.activation)
        return self.narrow(self.dropout(activated)).view(states.shape)

    def formula(self, inputs: str) -> str:
        return f"W₂ {self.activation}(W₁ {inputs} + b₁) + b₂"


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network.

    skip: if False, there is no skip connection around attention, so the output at a position
          depends on the inputs only through attention. Default: True
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feedforward: FeedForward,
        norm: Norm,
        dropout: float,
        skip: bool = True,
    ) -> None:
        super().__init__()
        width = attention.query_width
        self.attention = attention
        self.feedforward = feedforward
        self.attention_residual = Residual(width, norm, dropout, skip)
        self.feedforward_residual = Residual(width, norm, dropout)

    def forward(self, stream: Tensor, mask: Tensor, position_ids: PositionIds = 0) -> Tensor:
        """Apply self-attention, then the feed-forward network: (B, S, D) -> (B, S, D)

        mask: broadcastable to (B, H, S, S), True where a position is visible
        """

        def attend(states: Tensor) -> Tensor:
            return self.attention.attend_self(states, mask=mask, position_ids=position_ids)

        stream = self.attention_residual(stream, attend)
        return self.feedforward_residual(stream, self.feedforward)


class DecoderLayer(nn.Module):
    """Causal self-attention, then cross-attention to the source, then a feed-forward network.

    cross_attention: None for a decoder without a source (language model)
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention | None,
        feedforward: FeedForward,
        norm: Norm,
        dropout: float,
    ) -> None:
        super().__init__()
        width = attention.query_width
        self.attention = attention
        self.cross_attention = cross_attention
        self.feedforward = feedforward
        self.attention_residual = Residual(width, norm, dropout)
        self.cross_attention_residual = (
            None if cross_attention is None else Residual(width, norm, dropout)
        )
        self.feedforward_residual = Residual(width, norm, dropout)

    def forward(
        self,
        stream: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
        causal_mask: Tensor | None = None,
        position_ids: PositionIds = 0,
    ) -> Tensor:
        """Compute all positions at once: (B, T, D) -> (B, T, D)

        memory:      (B, S, D) encoder states; not used without cross-attention
        memory_mask: broadcastable to (B, H, T, S), True where a source position is visible
        causal_mask: broadcastable to (B, H, T, T), True where a target position is visible. Needed
                     if a row contains several sequences. Default: each position attends to itself
                     and to all earlier positions
        """

        def attend(states: Tensor) -> Tensor:
            return self.attention.attend_self(
                states,
                mask=causal_mask,
                is_causal=causal_mask is None,
                position_ids=position_ids,
            )

        stream = self.attention_residual(stream, attend)
        cross, residual = self.cross_attention, self.cross_attention_residual
        if cross is not None and residual is not None:
            keys_values = cross.project_keys_values(memory)
            stream = residual(
                stream,
                lambda states: cross.attend(
                    states, keys_values, memory_mask, position_ids=position_ids
                ),
            )
        return self.feedforward_residual(stream, self.feedforward)

    def step(
        self,
        stream: Tensor,
        cache: Cache,
        projections: PackedLinear | None,
        source: CrossAttentionInput | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute one position of R hypotheses: (R, D) -> (R, D)

        Also return the cross-attention weights (R, H, S). They are None if there is no
        cross-attention or `source.need_attention` is False.

        projections: the query, key and value projections of self-attention, joined into one layer
                     for speed. None: they are applied separately
        """
        position = cache.position  # self-attention increments it
        stream = self.attention_residual(
            stream, lambda states: self.attention.step(states, cache, projections)
        )
        weights: Tensor | None = None
        cross, residual = self.cross_attention, self.cross_attention_residual
        if cross is not None and residual is not None and source is not None:

            def attend(states: Tensor) -> Tensor:
                nonlocal weights
                context, weights = cross.step_cross(
                    states,
                    source.memory,
                    source.mask,
                    source.need_attention,
                    cross.query_position(position, states.device),
                )
                return context

            stream = residual(stream, attend)
        return self.feedforward_residual(stream, self.feedforward), weights
