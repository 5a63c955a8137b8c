"""Models with random weights: for what a model is by its shape, before it learns anything."""

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
READ = 16
"""Numbers at each source position."""


def recurrent(width: int, *, attention: bool) -> ModelConfig:
    """A GRU that reads forwards, and one that writes."""
    return ModelConfig(
        encoder=RecurrentEncoderConfig(width=width, direction="forward"),
        decoder=RecurrentDecoderConfig(
            width=width,
            handover="whole",
            attention=AttentionConfig() if attention else NoAttentionConfig(),
        ),
    )


def transformer(width: int, layers: int) -> ModelConfig:
    """As in the paper, but small."""
    heads = AttentionConfig(
        **{**TransformerEncoderConfig().attention.model_dump(), "heads": max(1, width // 16)}
    )
    return ModelConfig(
        encoder=TransformerEncoderConfig(
            width=width, layers=layers, feedforward=2 * width, dropout=0.0, attention=heads
        ),
        decoder=TransformerDecoderConfig(
            width=width, layers=layers, feedforward=2 * width, dropout=0.0, attention=heads
        ),
    )


def random_model(config: ModelConfig, seed: int) -> Model:
    """With weights as training would begin with; it reads vectors and puts out tokens."""
    torch.manual_seed(seed)
    signature = Signature(Vectors(READ), Tokens(VOCABULARY), shared=False)
    return build_model(config, signature).eval()


def random_batch(rows: int, length: int, seed: int) -> Batch:
    """Vectors to read and tokens to write, as many of the one as of the other."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randn(rows, length, READ, generator=generator)  # (B, S, D)
    tokens = torch.randint(4, VOCABULARY, (rows, length), generator=generator)  # (B, T)
    lengths = torch.full((rows,), length)
    return Batch(Padded(source, lengths), Padded(tokens, lengths), Padded(tokens, lengths))
