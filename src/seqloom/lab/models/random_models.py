"""Models with random weights, for experiments on properties that training does not change."""

import torch

from seqloom.config.schema.attention import AttentionConfig, NoAttentionConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from seqloom.config.schema.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.signature import Signature, Tokens, Vectors
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model

VOCABULARY = 50
SOURCE_WIDTH = 16
"""Width of the source vectors."""


def recurrent_config(width: int, *, attention: bool) -> ModelConfig:
    """Return the config of a model with a unidirectional GRU encoder and a GRU decoder.

    attention: True if the decoder has attention
    """
    return ModelConfig(
        encoder=RecurrentEncoderConfig(width=width, direction="forward"),
        decoder=RecurrentDecoderConfig(
            width=width,
            initial_state="copy",
            attention=AttentionConfig() if attention else NoAttentionConfig(),
        ),
    )


def transformer_config(width: int, layers: int) -> ModelConfig:
    """Return the config of a Transformer without dropout.

    It has one attention head per 16 units of width. All other attention options have their
    defaults.
    """
    attention = AttentionConfig(
        **{**TransformerEncoderConfig().attention.model_dump(), "heads": max(1, width // 16)}
    )
    return ModelConfig(
        encoder=TransformerEncoderConfig(
            width=width, layers=layers, feedforward=2 * width, dropout=0.0, attention=attention
        ),
        decoder=TransformerDecoderConfig(
            width=width, layers=layers, feedforward=2 * width, dropout=0.0, attention=attention
        ),
    )


def random_model(config: ModelConfig, seed: int) -> Model:
    """Return an untrained model with random initial weights. It reads vectors and predicts tokens."""
    torch.manual_seed(seed)
    signature = Signature(Vectors(SOURCE_WIDTH), Tokens(VOCABULARY), shared=False)
    return build_model(config, signature).eval()


def random_batch(rows: int, length: int, seed: int) -> Batch:
    """Return a batch of random source vectors and target tokens, both of the same length."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randn(rows, length, SOURCE_WIDTH, generator=generator)  # (B, S, D)
    tokens = torch.randint(4, VOCABULARY, (rows, length), generator=generator)  # (B, T)
    lengths = torch.full((rows,), length)
    return Batch(Padded(source, lengths), Padded(tokens, lengths), Padded(tokens, lengths))
