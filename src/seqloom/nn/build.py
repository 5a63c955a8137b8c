"""The switches of a part → the part. What is chosen for a whole model is in `models/build.py`."""

from typing import assert_never

from seqloom.config.schema.attention import (
    AdditiveScoreConfig,
    AttentionConfig,
    BilinearScoreConfig,
    DotScoreConfig,
    RbfScoreConfig,
)
from seqloom.config.schema.embedding import (
    EmbeddingConfig,
    LearnedEmbeddingConfig,
    LearnedPositionsConfig,
    NoPositionsConfig,
    OneHotEmbeddingConfig,
    OneHotPositionsConfig,
    PositionsConfig,
    RotaryPositionsConfig,
    SinusoidalPositionsConfig,
)
from seqloom.config.schema.transformer import LayerStackConfig
from seqloom.core.signature import Tokens, Vectors
from seqloom.nn.attention import AdditiveScore, BilinearScore, DotScore, RbfScore, Score
from seqloom.nn.embedding import LearnedLookup, Lookup, OneHotLookup, VectorLookup
from seqloom.nn.multihead import AttentionPlan, MultiHeadAttention
from seqloom.nn.positions import LearnedPositions, OneHotPositions, Positions, SinusoidalPositions
from seqloom.nn.transformer import FeedForward


def build_lookup(
    config: EmbeddingConfig, read: Tokens | Vectors, width: int, small: bool
) -> Lookup:
    """What is read to vectors: as wide as the embedding says, else `width`; `small` as
    LearnedLookup. Numbers have no embedding but a linear map."""
    if isinstance(read, Vectors):
        return VectorLookup(read.width, width)
    vocabulary = read.count
    match config:
        case OneHotEmbeddingConfig():
            return OneHotLookup(vocabulary)
        case LearnedEmbeddingConfig(width=own, noise=noise, word_dropout=dropped):
            return LearnedLookup(vocabulary, own or width, noise, small, dropped)
        case _:
            assert_never(config)


def build_positions(config: PositionsConfig, width: int) -> Positions:
    """Positions for vectors of this width. Rotary ones are no vectors: attention turns by them."""
    match config:
        case NoPositionsConfig() | RotaryPositionsConfig():
            return Positions()
        case OneHotPositionsConfig(max_length=longest, join=join):
            return OneHotPositions(join, longest if join == "append" else width, longest)
        case SinusoidalPositionsConfig(join=join, width=own):
            return SinusoidalPositions(join, own if join == "append" else width)
        case LearnedPositionsConfig(max_length=longest, join=join, width=own):
            return LearnedPositions(join, own if join == "append" else width, longest)
        case _:
            assert_never(config)


def build_feedforward(part: LayerStackConfig) -> FeedForward:
    """The feed-forward network of a Transformer's layer."""
    return FeedForward(part.width, part.feedforward, part.activation, part.feedforward_dropout)


def build_attention(
    config: AttentionConfig, query_width: int, key_width: int, rotary: bool = False
) -> MultiHeadAttention:
    """Attention of states of one width to states of another."""
    plan = AttentionPlan(
        query_width=query_width,
        key_width=key_width,
        width=config.width or query_width,
        heads=config.heads,
        projection=config.projection,
        learned_values=config.values == "learned",
        merged_width=query_width if config.merge else None,
    )
    if config.selection == "nearest":
        # The closest key is the best one under the score that measures distance.
        return MultiHeadAttention(plan, RbfScore(1.0), "argmax", rotary, config.dropout)
    return MultiHeadAttention(
        plan, build_score(config, plan), config.selection, rotary, config.dropout
    )


def build_score(config: AttentionConfig, plan: AttentionPlan) -> Score:
    """How well a query and a key match, for heads as wide as the plan says."""
    score = config.score
    match score:
        case DotScoreConfig(scale=scale):
            return DotScore(scale, plan.query_head)
        case BilinearScoreConfig():
            return BilinearScore(plan.heads, plan.query_head, plan.key_head)
        case AdditiveScoreConfig(width=width):
            return AdditiveScore(plan.heads, plan.query_head, plan.key_head, width)
        case RbfScoreConfig(gamma=gamma):
            return RbfScore(gamma)
        case _:
            assert_never(score)
