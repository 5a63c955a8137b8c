"""Layers: attention, positions, recurrent and Transformer layers, losses.

Example, with queries (B, T, 64), states (B, S, 64) and a mask (B, S):

    from seqloom.nn import MultiHeadAttention

    attention = MultiHeadAttention(64, heads=8)
    context, weights = attention(queries, states, mask=mask)
"""

from seqloom.nn.attention import (
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    DotScore,
    ExactScore,
    FixedScore,
    PositionScore,
    RbfScore,
    attention_weights,
)
from seqloom.nn.convolution import Crop, Patches, ResidualNetwork
from seqloom.nn.copying import Copying
from seqloom.nn.dropout import Dropout, LockedDropout
from seqloom.nn.embedding import (
    Embedder,
    LabelReadout,
    LearnedLookup,
    Lookup,
    OneHotLookup,
    Readout,
    VectorLookup,
)
from seqloom.nn.key_value_cache import KeysValues, KeyValueCache
from seqloom.nn.losses import cross_entropy_sum, smoothed_cross_entropy_sum, squared_error_sum
from seqloom.nn.multihead import AttentionOutput, MultiHeadAttention
from seqloom.nn.observer import AttentionTrace, Observer, observe, observing
from seqloom.nn.positions import (
    LearnedPositions,
    OneHotPositions,
    Positions,
    SinusoidalPositions,
    rotate,
    sinusoid,
)
from seqloom.nn.recurrent import RecurrentLayer
from seqloom.nn.transformer import DecoderLayer, EncoderLayer, FeedForward, Residual

__all__ = [
    "AdditiveScore",
    "AttentionOutput",
    "AttentionScore",
    "AttentionTrace",
    "BilinearScore",
    "Copying",
    "Crop",
    "DecoderLayer",
    "DotScore",
    "Dropout",
    "Embedder",
    "EncoderLayer",
    "ExactScore",
    "FeedForward",
    "FixedScore",
    "KeyValueCache",
    "KeysValues",
    "LabelReadout",
    "LearnedLookup",
    "LearnedPositions",
    "LockedDropout",
    "Lookup",
    "MultiHeadAttention",
    "Observer",
    "OneHotLookup",
    "OneHotPositions",
    "Patches",
    "PositionScore",
    "Positions",
    "RbfScore",
    "Readout",
    "RecurrentLayer",
    "Residual",
    "ResidualNetwork",
    "SinusoidalPositions",
    "VectorLookup",
    "attention_weights",
    "cross_entropy_sum",
    "observe",
    "observing",
    "rotate",
    "sinusoid",
    "smoothed_cross_entropy_sum",
    "squared_error_sum",
]
