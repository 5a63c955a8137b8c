"""Hugging Face Marian: the model, and a plain training loop to time beside seqloom on a GPU.

    from bench.marian import BatchShape, time_training

    first, *steady = time_training([BatchShape(rows=200, source=20, target=20), …])

The first pass includes the one-time costs of each new shape. Requires transformers; downloads
nothing. Also runs on a CPU.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class BatchShape:
    """Number of rows, and the padded lengths of sources and targets."""

    rows: int
    source: int
    target: int


@dataclass(frozen=True)
class MarianSize:
    """The size of the model. Default: Transformer-base."""

    vocabulary: int = 10_000
    width: int = 512
    layers: int = 6
    heads: int = 8
    feedforward: int = 2048
    dropout: float = 0.1


@dataclass(frozen=True)
class TimedPass:
    """The time of one pass over all batches."""

    seconds: float
    target_tokens: int

    @property
    def tokens_per_second(self) -> float:
        return self.target_tokens / self.seconds


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the loop. cudnn_attention: None leaves the choice of kernels to torch."""

    passes: int = 3
    bfloat16: bool = True
    cudnn_attention: bool | None = None
    learning_rate: float = 1e-4
    seed: int = 1


TRANSFORMER_BASE, DEFAULTS = MarianSize(), TrainingSettings()


def time_training(
    shapes: Sequence[BatchShape],
    size: MarianSize = TRANSFORMER_BASE,
    device: str | torch.device = "cuda",
    settings: TrainingSettings = DEFAULTS,
) -> list[TimedPass]:
    """Train `passes` times on batches of these shapes and time each pass.

    The batches have no padding: every position is a real token. A step is forward, backward, clip
    and AdamW, with bf16 autocast and fp32 weights.
    """
    target_device = torch.device(device)
    torch.manual_seed(settings.seed)
    model = build_marian(size).to(target_device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), settings.learning_rate, fused=target_device.type == "cuda"
    )
    batches = [random_batch(shape, size.vocabulary, target_device) for shape in shapes]
    tokens = sum(shape.rows * shape.target for shape in shapes)
    with use_cudnn_attention(settings.cudnn_attention):
        return [
            TimedPass(time_pass(model, optimizer, batches, settings.bfloat16), tokens)
            for _ in range(settings.passes)
        ]


def build_marian(size: MarianSize) -> Any:
    """A MarianMTModel with random weights."""
    from transformers import MarianConfig, MarianMTModel

    return MarianMTModel(
        MarianConfig(
            vocab_size=size.vocabulary,
            d_model=size.width,
            encoder_layers=size.layers,
            decoder_layers=size.layers,
            encoder_attention_heads=size.heads,
            decoder_attention_heads=size.heads,
            encoder_ffn_dim=size.feedforward,
            decoder_ffn_dim=size.feedforward,
            dropout=size.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=0,
            eos_token_id=2,
            forced_eos_token_id=None,
            decoder_start_token_id=0,
            use_cache=False,
        )
    )


def random_batch(shape: BatchShape, vocabulary: int, device: torch.device) -> dict[str, Tensor]:
    source = torch.randint(4, vocabulary, (shape.rows, shape.source), device=device)
    labels = torch.randint(4, vocabulary, (shape.rows, shape.target), device=device)
    return {"input_ids": source, "attention_mask": torch.ones_like(source), "labels": labels}


def time_pass(
    model: Any, optimizer: torch.optim.Optimizer, batches: list[dict[str, Tensor]], bfloat16: bool
) -> float:
    """Seconds for one training step per batch."""
    device = next(model.parameters()).device
    synchronise(device)
    start = time.perf_counter()
    for batch in batches:
        precision = torch.autocast(device.type, torch.bfloat16) if bfloat16 else nullcontext()
        with precision:
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    synchronise(device)
    return time.perf_counter() - start


def synchronise(device: torch.device) -> None:
    """Wait until all launched kernels are finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def use_cudnn_attention(enabled: bool | None) -> Iterator[None]:
    """Enable or disable the attention kernels of cuDNN inside the block. None changes nothing."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    if enabled is not None:
        torch.backends.cuda.enable_cudnn_sdp(enabled)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
