"""Builds layers from their configs. `models/build.py` builds whole models."""

from typing import assert_never

import torch

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.schema.attention import AttentionConfig
from seqloom.config.schema.embedding import EmbeddingConfig, PositionsConfig
from seqloom.config.schema.transformer import LayerStackConfig
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Tokens, Vectors
from seqloom.nn.attention import (
    AttentionScore,
    ExactScore,
    RbfScore,
    Selection,
)
from seqloom.nn.embedding import Lookup, ReplacedToken, VectorLookup
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.positions import Positions
from seqloom.nn.transformer import FeedForward


def build_lookup(
    config: EmbeddingConfig,
    inputs: Tokens | Vectors,
    width: int,
    scaled: bool,
    replaced: ReplacedToken | None = None,
) -> Lookup:
    """Build the first layer of a network: an embedding of token ids, or a projection of vectors.

    width:    output width, unless the config of a learned embedding sets another width
    scaled:   if True, learned embeddings start with standard deviation 1/√width and are multiplied
              by √width after the lookup. If False, they start with standard deviation 1
    replaced: a token that uses the vector of another token, or zeros. Default: None
    """
    if isinstance(inputs, Vectors):
        return VectorLookup(inputs.width, width)
    lookup: Lookup = config.build_part(
        vocabulary=inputs.count,
        width=config.vector_width(width),
        scaled=scaled,
        replaced=replaced,
    )
    return lookup


def build_positions(config: PositionsConfig, width: int) -> Positions:
    """Build the module that adds position vectors to token vectors, or appends them.

    For rotary positions, return a module that changes nothing, because attention rotates queries
    and keys itself.

    width: width of the token vectors
    """
    positions: Positions = config.build_part(width=config.table_width(width))
    return positions


def build_feedforward(config: LayerStackConfig) -> FeedForward:
    """Build the feed-forward network of a Transformer layer."""
    return FeedForward(
        config.width, config.feedforward, config.activation, config.feedforward_dropout
    )


def build_attention(
    config: AttentionConfig, query_width: int, key_width: int, rotary: bool = False
) -> MultiHeadAttention:
    """Build attention from states of width `query_width` to states of width `key_width`.

    rotary: rotate queries and keys by their positions. Default: False
    """
    width = config.width or query_width
    projects = config.projection != "none"
    score = build_score(
        config,
        query_width=(width if projects else query_width) // config.heads,
        key_width=(width if projects else key_width) // config.heads,
    )
    return MultiHeadAttention(
        query_width,
        config.heads,
        key_width=key_width,
        width=width,
        score=score,
        projection=config.projection,
        projection_layers=config.projection_layers,
        values=config.values,
        output_projection=config.output_projection,
        selection=_build_selection(config),
        rotary=rotary,
        dropout=config.dropout,
    )


def _build_selection(config: AttentionConfig) -> Selection:
    match config.selection:
        case "softmax" | "argmax" | "exact":
            return config.selection
        case "nearest":
            return "argmax"  # with the score of `build_score`, the nearest key has the best score
        case _:
            assert_never(config.selection)


def build_score(config: AttentionConfig, query_width: int, key_width: int) -> AttentionScore:
    """Build the score function of an attention layer.

    query_width: width of the queries of one head
    key_width:   width of the keys of one head
    """
    if config.selection == "nearest":
        # The score is minus the squared distance, so the nearest key has the highest score.
        return RbfScore(1.0)
    if config.selection == "exact":
        return ExactScore(config.tolerance)
    provided = {"query_width": query_width, "key_width": key_width, "heads": config.heads}
    score = config.score.build_part(**provided)
    if isinstance(config.score, ExtensionConfig):
        check_extension_score(score, config.score.kind, query_width, key_width, config.heads)
    return score


def check_extension_score(
    score: object, kind: str, query_width: int, key_width: int, heads: int
) -> None:
    """Compute a score that is defined outside seqloom once, to check it.

    Raises ConfigError if the score is not an `AttentionScore`, fails for these widths, or returns a
    wrong shape.
    """
    if not isinstance(score, AttentionScore):
        raise ConfigError(
            f"the score '{kind}' returns a {type(score).__name__}, but a score must be a "
            "subclass of seqloom.nn.AttentionScore"
        )
    queries, keys = torch.zeros(1, heads, 2, query_width), torch.zeros(1, heads, 3, key_width)
    try:
        with torch.no_grad():
            shape = tuple(score(queries, keys).shape)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        raise ConfigError(
            f"the score '{kind}' fails for queries of width {query_width} and keys of width "
            f"{key_width}: {type(error).__name__}: {error}. If it needs equal widths, make the "
            "widths of encoder and decoder equal, or set attention.projection = 'linear'"
        ) from error
    if shape != (1, heads, 2, 3):
        raise ConfigError(
            f"the score '{kind}' returns the shape {shape} for 1 source, {heads} heads, 2 "
            f"queries and 3 keys; it must return (1, {heads}, 2, 3)"
        )
