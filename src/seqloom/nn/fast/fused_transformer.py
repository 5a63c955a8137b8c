"""Transformer layers in training on a GPU, built from fused functions.

The plain version is the loop over `layers` in `models/transformer.py`. The stream between the layers is
in bf16 here. Statistics, softmax and gradients of weights are in float32.

The normalisation of a sublayer is computed together with the end of the sublayer before it. So the
functions here pass two tensors from sublayer to sublayer: the stream and its normalisation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqloom.nn.attention import DotScore
from seqloom.nn.dropout import Dropout
from seqloom.nn.embedding import Embedder, LearnedLookup
from seqloom.nn.fast import fused_functions as fused
from seqloom.nn.fast.dispatch import MAX_NORM_WIDTH, has_triton
from seqloom.nn.fast.fused_functions import (
    NO_DROPOUT,
    AttentionSettings,
    DropoutDraw,
    NormWeights,
    SourcePart,
    Weights,
)
from seqloom.nn.fast.linear import Linear
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import current_observer
from seqloom.nn.positions import PositionIds, Positions, SinusoidalPositions, expand_position_ids
from seqloom.nn.transformer import DecoderLayer, EncoderLayer, FeedForward, Residual

PRECISION = torch.bfloat16
"""Precision of the stream and of matrix products."""
HEAD_WIDTHS = (16, 32, 64)
"""Widths of a head for which there is a kernel."""


def can_fuse(layers: Sequence[nn.Module], tokens: Tensor, keys: Tensor) -> bool:
    """Return True if `encode` or `decode` can be used for these layers.

    It is possible in training on a GPU in bf16, if Triton is installed, the layers are not compiled,
    rows are short, nothing is observed, and the layers are those of Vaswani et al. 2017, with
    normalisation before or after each sublayer.

    tokens: (B, T) tokens, or (B, T, ·) vectors
    keys:   (B, S) or (B, S, ·); the source has S positions
    """
    device = tokens.device.type
    return (
        has_triton(tokens)
        and current_observer() is None
        and torch.is_grad_enabled()
        and torch.is_autocast_enabled(device)
        and torch.get_autocast_dtype(device) == PRECISION
        and 0 < tokens.shape[1] <= fused.MAX_LENGTH
        and keys.shape[1] <= fused.MAX_LENGTH
        and supports(layers)
    )


def supports(layers: Sequence[nn.Module]) -> bool:
    """Return True if the fused functions can compute these layers."""
    if not all(_is_standard(layer) for layer in layers):
        return False
    return len({residual.dropout.p for residual in _residuals(layers)}) == 1


def _is_standard(layer: nn.Module) -> bool:
    """Return True if the fused functions can compute this layer.

    They do not call the layer. So it must not be compiled, and its `forward` must not be changed, for
    example by activation checkpointing or by a hook.
    """
    is_changed = (
        layer._compiled_call_impl is not None
        or "forward" in vars(layer)
        or layer._forward_hooks
        or layer._forward_pre_hooks
    )
    if type(layer) not in (EncoderLayer, DecoderLayer) or is_changed:
        return False
    assert isinstance(layer, EncoderLayer | DecoderLayer)
    feedforward = layer.feedforward
    linears: list[nn.Module] = [feedforward.widen, feedforward.narrow]
    for attention in _attentions(layer):
        linears += [attention.to_query, attention.to_key, attention.to_value]
        linears.append(attention.output_projection)
        if not (
            type(attention.score) is DotScore  # kernels compute no other product
            and attention.selection == "softmax"
            and attention.dropout == 0
            and attention.projection == "linear"
            and not attention.query_layers
            and not attention.rotary
            and attention.width // attention.heads in HEAD_WIDTHS
        ):
            return False
    return (
        feedforward.activation == "relu"
        and layer.attention.query_width <= MAX_NORM_WIDTH
        and layer.attention_residual.skip
        and all(type(part) is Linear and part.weight.requires_grad for part in linears)
    )


def _residuals(layers: Sequence[nn.Module]) -> list[Residual]:
    """Return the residual connections of the layers, in the order in which they are used."""
    residuals: list[Residual] = []
    for layer in layers:
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        residuals.append(layer.attention_residual)
        if isinstance(layer, DecoderLayer) and layer.cross_attention_residual is not None:
            residuals.append(layer.cross_attention_residual)
        residuals.append(layer.feedforward_residual)
    return residuals


def _attentions(layer: EncoderLayer | DecoderLayer) -> Iterator[MultiHeadAttention]:
    yield layer.attention
    if isinstance(layer, DecoderLayer) and layer.cross_attention is not None:
        yield layer.cross_attention


@dataclass(frozen=True)
class LayerWeights:
    """The weights of a layer in bf16 and float32.

    joined:       queries, keys and values of self-attention
    output:       output projection of self-attention
    queries:      queries of cross-attention
    cross_output: output projection of cross-attention
    widen, widen_bias, narrow: the feed-forward network
    """

    joined: Weights
    output: Weights
    widen: Weights
    widen_bias: Weights
    narrow: Weights
    queries: Weights | None = None
    cross_output: Weights | None = None


def layer_weights(layers: Sequence[EncoderLayer | DecoderLayer]) -> list[LayerWeights]:
    """Convert the weights of all layers to bf16 with one kernel."""
    groups: list[dict[str, list[Tensor]]] = []
    for layer in layers:
        own, network = layer.attention, layer.feedforward
        group = {
            "joined": [_weight(part) for part in (own.to_query, own.to_key, own.to_value)],
            "output": [_weight(own.output_projection)],
            "widen": [_weight(network.widen)],
            "widen_bias": [_bias(network.widen)],
            "narrow": [_weight(network.narrow)],
        }
        cross = layer.cross_attention if isinstance(layer, DecoderLayer) else None
        if cross is not None:
            group["queries"] = [_weight(cross.to_query)]
            group["cross_output"] = [_weight(cross.output_projection)]
        groups.append(group)
    flat = [weights for group in groups for weights in group.values()]
    converted = iter(fused.low_precision(flat, PRECISION))
    return [LayerWeights(**{name: next(converted) for name in group}) for group in groups]


def _weight(module: nn.Module) -> Tensor:
    assert isinstance(module, nn.Linear)
    return module.weight


def _bias(module: nn.Module) -> Tensor:
    assert isinstance(module, nn.Linear)
    return module.bias


@dataclass(frozen=True)
class Stream:
    """The state between two sublayers.

    residual: (B, T, D) input of the next residual connection
    inputs:   (B, T, D) input of the next sublayer
    dropouts: dropouts after the following sublayers
    """

    residual: Tensor
    inputs: Tensor
    dropouts: Iterator[DropoutDraw]

    def after(
        self, states: Tensor, bias: Tensor, residual: Residual, following: NormWeights
    ) -> "Stream":
        """Return the state after a sublayer.

        states:    (R, D) output of the sublayer, without the bias of its last linear layer
        residual:  the residual connection around the sublayer
        following: normalisation of the inputs of the next sublayer or, for "post", of the sum
        """
        summed, normalised = fused.add_norm(
            self.residual, states.view_as(self.residual), bias, next(self.dropouts), following
        )
        return Stream(summed if residual.pre_norm else normalised, normalised, self.dropouts)


@dataclass(frozen=True)
class TokenInputs:
    """The inputs of an encoder or a decoder.

    embedder:     computes the inputs of the first layer
    tokens:       (B, T) tokens, or (B, T, ·) vectors
    position_ids: position of each token
    """

    embedder: Embedder
    tokens: Tensor
    position_ids: PositionIds

    def embed(self, dropout: DropoutDraw, rate: float) -> Tensor:
        """Return the inputs of the first layer in bf16: (B, T, D)

        dropout: used if the rate of the embedder's dropout is `rate`
        """
        embedder, lookup, positions = self.embedder, self.embedder.lookup, self.embedder.positions
        if (
            type(lookup) is not LearnedLookup
            or not lookup.is_deterministic
            or lookup.replaced is not None
            or type(positions) not in (Positions, SinusoidalPositions)
            or type(embedder.dropout) is not Dropout
            or embedder.dropout.p != rate
            or embedder.width != lookup.width
        ):
            return embedder(self.tokens, self.position_ids).to(PRECISION).contiguous()
        vectors = positions.tabulate(self.tokens.shape[1], lookup.weight)
        located = None
        if vectors is not None:
            ids = expand_position_ids(self.position_ids, self.tokens.shape[1], self.tokens.device)
            located = ids.expand_as(self.tokens), vectors
        return fused.embed(self.tokens, lookup.weight, lookup.scale, located, dropout, PRECISION)


def encode(
    layers: Sequence[EncoderLayer], final_norm: nn.Module, inputs: TokenInputs, ids: Tensor
) -> Tensor:
    """Apply the layers of an encoder and the final normalisation -> (B, S, D) in bf16

    ids: (B, S) a position attends to the positions with its id
    """
    residuals = _residuals(layers)
    norms = _norms(residuals, final_norm)
    stream = _start(residuals, inputs)
    for layer, weights in zip(layers, layer_weights(layers), strict=True):
        stream = _self_attention(layer, weights, stream, ids, False, next(norms))
        stream = _feedforward(layer, weights, stream, next(norms))
    return stream.inputs


def decode(
    layers: Sequence[DecoderLayer],
    final_norm: nn.Module,
    inputs: TokenInputs,
    memory: Tensor,
    ids: tuple[Tensor, Tensor],
) -> Tensor:
    """Apply the layers of a decoder and the final normalisation -> (B, T, D) in bf16

    memory: (B, S, D) states of the encoder
    ids:    ids of the target positions (B, T) and of the source positions (B, S). A position attends to
            the source positions with its id, and to the target positions up to its own with its id
    """
    residuals = _residuals(layers)
    norms = _norms(residuals, final_norm)
    stream = _start(residuals, inputs)
    sources = iter(_project_memory(layers, memory))
    for layer, weights in zip(layers, layer_weights(layers), strict=True):
        stream = _self_attention(layer, weights, stream, ids[0], True, next(norms))
        if layer.cross_attention is not None:
            stream = _cross_attention(layer, weights, stream, next(sources), ids, next(norms))
        stream = _feedforward(layer, weights, stream, next(norms))
    return stream.inputs


def _project_memory(layers: Sequence[DecoderLayer], memory: Tensor) -> list[SourcePart]:
    """Compute keys and values of the source for all layers with one product.

    Returns an empty list if the layers have no cross-attention.
    """
    parts: list[Tensor] = []
    for layer in layers:
        cross = layer.cross_attention
        if cross is not None:
            parts += [_weight(cross.to_key), _weight(cross.to_value)]
    if not parts:
        return []
    rows = memory.to(PRECISION).flatten(0, 1)  # (B · S, D)
    (weights,) = fused.low_precision([parts], PRECISION)
    return fused.linear_parts(rows, weights, len(memory), len(layers))


def _norms(residuals: Sequence[Residual], final_norm: nn.Module) -> Iterator[NormWeights]:
    """Return, for each sublayer, the normalisation that is computed at its end."""
    norms: list[nn.LayerNorm] = [residual.norm for residual in residuals]
    if residuals[0].pre_norm:
        assert isinstance(final_norm, nn.LayerNorm)
        norms = [*norms[1:], final_norm]
    return iter([_norm_weights(norm) for norm in norms])


def _norm_weights(norm: nn.LayerNorm) -> NormWeights:
    return NormWeights(norm.weight, norm.bias, norm.eps)


def _start(residuals: Sequence[Residual], inputs: TokenInputs) -> Stream:
    """Return the state before the first sublayer.

    residuals: the residual connections of all sublayers
    """
    first = residuals[0]
    count = 1 + len(residuals)  # one for the embedding
    rate = first.dropout.p
    drawn_rate = rate if first.training else 0.0
    dropouts = iter(fused.draw_dropouts(count, drawn_rate, inputs.tokens.device))
    embedded = inputs.embed(next(dropouts), rate)
    if not first.pre_norm:
        return Stream(embedded, embedded, dropouts)
    norm = _norm_weights(first.norm)
    return Stream(*fused.add_norm(embedded, None, None, NO_DROPOUT, norm), dropouts)


def _attention(
    attention: MultiHeadAttention,
    queries: Tensor,
    source: SourcePart | None,
    output: Weights,
    ids: tuple[Tensor, Tensor],
    is_causal: bool,
) -> Tensor:
    """Attend, then apply the output projection without its bias -> (B · T, D)"""
    biases = _bias(attention.to_query), _bias(attention.to_key), _bias(attention.to_value)
    settings = AttentionSettings(attention.heads, 1 / attention.score.divisor, is_causal)
    context = fused.attention(queries, source, biases, ids, settings)
    return fused.linear(context.flatten(0, 1), output)


def _self_attention(
    layer: EncoderLayer | DecoderLayer,
    weights: LayerWeights,
    stream: Stream,
    ids: Tensor,
    is_causal: bool,
    following: NormWeights,
) -> Stream:
    batch = len(stream.inputs)
    projected = fused.linear(stream.inputs.flatten(0, 1), weights.joined)
    parts = projected.unflatten(0, (batch, -1))
    states = _attention(layer.attention, parts, None, weights.output, (ids, ids), is_causal)
    bias = _bias(layer.attention.output_projection)
    return stream.after(states, bias, layer.attention_residual, following)


def _cross_attention(
    layer: DecoderLayer,
    weights: LayerWeights,
    stream: Stream,
    source: SourcePart,
    ids: tuple[Tensor, Tensor],
    following: NormWeights,
) -> Stream:
    cross, residual = layer.cross_attention, layer.cross_attention_residual
    assert cross is not None
    assert residual is not None
    assert weights.queries is not None
    assert weights.cross_output is not None
    batch = len(stream.inputs)
    queries = fused.linear(stream.inputs.flatten(0, 1), weights.queries).unflatten(0, (batch, -1))
    states = _attention(cross, queries, source, weights.cross_output, ids, is_causal=False)
    return stream.after(states, _bias(cross.output_projection), residual, following)


def _feedforward(
    layer: EncoderLayer | DecoderLayer,
    weights: LayerWeights,
    stream: Stream,
    following: NormWeights,
) -> Stream:
    network: FeedForward = layer.feedforward
    rate = network.dropout.p if network.training else 0.0
    rows = stream.inputs.flatten(0, 1)
    activated = fused.linear_relu(rows, weights.widen, weights.widen_bias, rate)
    states = fused.linear(activated, weights.narrow)
    return stream.after(states, _bias(network.narrow), layer.feedforward_residual, following)
