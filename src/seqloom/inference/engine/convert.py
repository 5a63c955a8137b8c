"""Converts a Transformer to the format of CTranslate2.

Weights are copied directly into a CTranslate2 model specification. Position encodings are stored
as seqloom computes them. By default, the CTranslate2 vocabulary contains the ids of the tokens
instead of their texts, so the conversion does not depend on the texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.inference.engine.package import ctranslate2
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder
from seqloom.nn.embedding import Embedder, LearnedLookup
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.transformer import DecoderLayer, EncoderLayer, FeedForward, Residual
from seqloom.text.vocabulary import END, START, UNKNOWN

Precision = Literal["int8", "float32"]
MAX_POSITIONS = 1_024
"""Number of stored positions for a model without a maximum length. Texts with more positions are
decoded with torch."""


@dataclass(frozen=True)
class TokenNames:
    """The names of the tokens in the vocabularies of CTranslate2.

    source, target: one name per token id
    add_source_end: if True, CTranslate2 adds END to every source. If False, callers add it
    """

    source: Sequence[str]
    target: Sequence[str]
    add_source_end: bool = False

    @classmethod
    def numbers(cls, model: Model) -> "TokenNames":
        """Return names for the tokens of a model: the id of a token, as text, is its name."""
        source, target = embedders(model)
        return cls(
            [str(token) for token in range(vocabulary_size(source))],
            [str(token) for token in range(vocabulary_size(target))],
        )


def convert(
    model: Model, folder: Path, precision: Precision, names: TokenNames | None = None
) -> None:
    """Convert a Transformer to CTranslate2 and write it to an existing folder.

    names: names of the tokens. Default: their ids
    """
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    specs = ctranslate2().specs
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(**_architecture(specs, encoder)),
        specs.TransformerDecoderSpec(**_architecture(specs, decoder)),
    )
    _embed(spec.encoder, spec.encoder.embeddings[0], encoder.embedder)
    _embed(spec.decoder, spec.decoder.embeddings, decoder.embedder)
    for part, encoder_layer in zip(spec.encoder.layer, encoder.layers, strict=True):
        _encoder_layer(part, encoder_layer)
    for part, decoder_layer in zip(spec.decoder.layer, decoder.layers, strict=True):
        _decoder_layer(part, decoder_layer)
    for part, module in ((spec.encoder, encoder), (spec.decoder, decoder)):
        if isinstance(module.norm, nn.LayerNorm):
            _norm(part.layer_norm, module.norm)
    _linear(spec.decoder.projection, _output(decoder))
    # The converted model computes W x + b for all tokens. With a bias of -inf, the probability of
    # an excluded token is 0.
    spec.decoder.projection.bias[: decoder.readout.excluded] = -np.inf
    _name_tokens(spec, TokenNames.numbers(model) if names is None else names)
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    spec.save(str(folder))


def embedders(model: Model) -> tuple[Embedder, Embedder]:
    """Return the source and the target embedding layer of a Transformer."""
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    return encoder.embedder, decoder.embedder


def vocabulary_size(embedder: Embedder) -> int:
    """Return the number of tokens that have an embedding."""
    assert isinstance(embedder.lookup, LearnedLookup)
    return len(embedder.lookup.weight)


def stored_positions(embedder: Embedder) -> int:
    """Return the number of position encodings that the converted model stores."""
    return embedder.positions.max_length or MAX_POSITIONS


def _architecture(
    specs: ModuleType, part: TransformerEncoder | TransformerDecoder
) -> dict[str, Any]:
    first: EncoderLayer | DecoderLayer = part.layers[0]
    attention = first.attention
    activations = specs.common_spec.Activation
    return {
        "num_layers": len(part.layers),
        "num_heads": attention.heads,
        "pre_norm": first.attention_residual.pre_norm,
        "activation": {
            "relu": activations.RELU,
            "gelu": activations.GELU,
            "gelu-tanh": activations.GELUTanh,
            "silu": activations.SWISH,
        }[first.feedforward.activation],
        "head_dim": attention.query_head_width,
        "rotary_dim": 0 if attention.rotary else None,
    }


def _embed(part: Any, embeddings: Any, embedder: Embedder) -> None:
    lookup = embedder.lookup
    assert isinstance(lookup, LearnedLookup)
    embeddings.weight = _array(lookup.effective_weight())
    part.scale_embeddings = lookup.scale != 1.0
    if not hasattr(part, "position_encodings"):
        return
    # Adding the position encodings to zeros yields the encodings themselves. If the model has no
    # position encodings, the result is zero.
    zeros = torch.zeros(1, stored_positions(embedder), lookup.width)
    added = embedder.positions(zeros.to(lookup.weight.device), 0)
    part.position_encodings.encodings = _array(added[0])


def _encoder_layer(part: Any, layer: EncoderLayer) -> None:
    _self_attention(part.self_attention, layer.attention, layer.attention_residual)
    _feedforward(part.ffn, layer.feedforward, layer.feedforward_residual)


def _decoder_layer(part: Any, layer: DecoderLayer) -> None:
    assert layer.cross_attention is not None
    assert layer.cross_attention_residual is not None
    _self_attention(part.self_attention, layer.attention, layer.attention_residual)
    _cross_attention(part.attention, layer.cross_attention, layer.cross_attention_residual)
    _feedforward(part.ffn, layer.feedforward, layer.feedforward_residual)


def _self_attention(part: Any, attention: MultiHeadAttention, residual: Residual) -> None:
    query, key, value = _projections(attention)
    part.linear[0].weight = np.concatenate([query[0], key[0], value[0]])
    part.linear[0].bias = np.concatenate([query[1], key[1], value[1]])
    _linear(part.linear[1], attention.output_projection)
    _norm(part.layer_norm, residual.norm)


def _cross_attention(part: Any, attention: MultiHeadAttention, residual: Residual) -> None:
    query, key, value = _projections(attention)
    part.linear[0].weight, part.linear[0].bias = query
    part.linear[1].weight = np.concatenate([key[0], value[0]])
    part.linear[1].bias = np.concatenate([key[1], value[1]])
    _linear(part.linear[2], attention.output_projection)
    _norm(part.layer_norm, residual.norm)


Projection = tuple[NDArray[np.float32], NDArray[np.float32]]


def _projections(attention: MultiHeadAttention) -> list[Projection]:
    """Return weight and bias of the query, key and value projections.

    CTranslate2 divides dot products by √d, where d is the width of a head. If seqloom divides by
    another number, the query projection is scaled to compensate.
    """
    assert attention.score.is_product
    factor = attention.query_head_width**0.5 / attention.score.divisor
    projections = []
    for part, scale in (
        (attention.to_query, factor),
        (attention.to_key, 1),
        (attention.to_value, 1),
    ):
        assert isinstance(part, nn.Linear)
        projections.append((_array(part.weight * scale), _array(part.bias * scale)))
    return projections


def _feedforward(part: Any, feedforward: FeedForward, residual: Residual) -> None:
    _linear(part.linear_0, feedforward.widen)
    _linear(part.linear_1, feedforward.narrow)
    _norm(part.layer_norm, residual.norm)


def _linear(part: Any, linear: nn.Module) -> None:
    assert isinstance(linear, nn.Linear)
    part.weight, part.bias = _array(linear.weight), _array(linear.bias)


def _norm(part: Any, norm: nn.LayerNorm) -> None:
    part.gamma, part.beta = _array(norm.weight), _array(norm.bias)


def _output(decoder: TransformerDecoder) -> nn.Module:
    return decoder.readout.get_submodule("output")


def _name_tokens(spec: Any, names: TokenNames) -> None:
    spec.register_source_vocabulary(list(names.source))
    spec.register_target_vocabulary(list(names.target))
    target = names.target
    spec.config.unk_token, spec.config.bos_token = target[UNKNOWN], target[START]
    spec.config.eos_token, spec.config.decoder_start_token = target[END], target[START]
    spec.config.add_source_eos = names.add_source_end


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy().copy()
    return array
