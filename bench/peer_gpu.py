"""A Marian Transformer-base trained in a plain loop, to be timed beside ours in the same run.

    from bench.peer_gpu import Shape, time_huggingface_loop

    first, *steady = time_huggingface_loop([Shape(rows=200, source=20, target=20), …])

The first pass sees every shape for the first time. transformers must be installed where this runs; nothing is fetched. Works on a CPU too.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Shape:
    """A batch: rows, and the lengths that its sources and targets are padded to."""

    rows: int
    source: int
    target: int


@dataclass(frozen=True)
class MarianSize:
    """Transformer-base unless said otherwise."""

    vocabulary: int = 10_000
    width: int = 512
    layers: int = 6
    heads: int = 8
    feedforward: int = 2048
    dropout: float = 0.1


@dataclass(frozen=True)
class Pass:
    """One pass over all batches: the first sight of their shapes, or one after it."""

    seconds: float
    target_tokens: int

    @property
    def tokens_per_second(self) -> float:
        return self.target_tokens / self.seconds


@dataclass(frozen=True)
class Settings:
    """How the loop runs. cudnn_attention None leaves torch's own choice of kernels."""

    passes: int = 3
    bfloat16: bool = True
    cudnn_attention: bool | None = None
    learning_rate: float = 1e-4
    seed: int = 1


BASE, DEFAULTS = MarianSize(), Settings()


def time_huggingface_loop(
    shapes: Sequence[Shape],
    size: MarianSize = BASE,
    device: str | torch.device = "cuda",
    settings: Settings = DEFAULTS,
) -> list[Pass]:
    """Train on batches of these shapes, all of them `passes` times: how long each pass took.

    Full rows without padding: every position is a real token. Forward, backward, clip and AdamW,
    bf16 autocast with fp32 weights.
    """
    place = torch.device(device)
    torch.manual_seed(settings.seed)
    model = marian(size).to(place).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), settings.learning_rate, fused=place.type == "cuda"
    )
    batches = [random_batch(shape, size.vocabulary, place) for shape in shapes]
    tokens = sum(shape.rows * shape.target for shape in shapes)
    with cudnn_attention(settings.cudnn_attention):
        return [
            Pass(timed(model, optimizer, batches, settings.bfloat16), tokens)
            for _ in range(settings.passes)
        ]


def marian(size: MarianSize) -> Any:
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


def random_batch(shape: Shape, vocabulary: int, device: torch.device) -> dict[str, Tensor]:
    source = torch.randint(4, vocabulary, (shape.rows, shape.source), device=device)
    labels = torch.randint(4, vocabulary, (shape.rows, shape.target), device=device)
    return {"input_ids": source, "attention_mask": torch.ones_like(source), "labels": labels}


def timed(
    model: Any, optimizer: torch.optim.Optimizer, batches: list[dict[str, Tensor]], bfloat16: bool
) -> float:
    """Seconds for one training step on each batch."""
    device = next(model.parameters()).device
    wait(device)
    began = time.perf_counter()
    for batch in batches:
        precision = torch.autocast(device.type, torch.bfloat16) if bfloat16 else nullcontext()
        with precision:
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    wait(device)
    return time.perf_counter() - began


def wait(device: torch.device) -> None:
    """Kernels that were launched are not yet done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class _CudnnAttention:
    """Switch cuDNN's attention kernels on or off, and back again afterwards."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def __enter__(self) -> None:
        self.before = torch.backends.cuda.cudnn_sdp_enabled()
        torch.backends.cuda.enable_cudnn_sdp(self.wanted)

    def __exit__(self, *_: object) -> None:
        torch.backends.cuda.enable_cudnn_sdp(self.before)


def cudnn_attention(wanted: bool | None) -> AbstractContextManager[None]:
    return nullcontext() if wanted is None else _CudnnAttention(wanted)
