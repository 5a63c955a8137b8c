"""A MarianMT model of the workload's size with random weights."""

from typing import Any

from transformers import MarianConfig, MarianMTModel

from bench.comparison.workload import END, PAD, Workload

DROPOUT = "embedded input, sublayers' outputs"
"""Marian can also apply dropout to attention weights and inside the feed-forward network. Both are
off by default and here."""


def build_marian(workload: Workload, **changes: Any) -> MarianMTModel:
    """The decoder starts with PAD, as is usual for Marian."""
    size: dict[str, Any] = {
        "vocab_size": workload.vocabulary,
        "d_model": workload.width,
        "encoder_layers": workload.layers,
        "decoder_layers": workload.layers,
        "encoder_attention_heads": workload.heads,
        "decoder_attention_heads": workload.heads,
        "encoder_ffn_dim": workload.feedforward,
        "decoder_ffn_dim": workload.feedforward,
        "dropout": workload.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "activation_function": "relu",
        "max_position_embeddings": 512,
        "scale_embedding": True,
        "pad_token_id": PAD,
        "eos_token_id": END,
        "forced_eos_token_id": None,
        "decoder_start_token_id": PAD,
        "use_cache": False,
        **changes,
    }
    return MarianMTModel(MarianConfig(**size))
