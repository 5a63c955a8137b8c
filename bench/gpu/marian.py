"""Hugging Face Marian on a GPU: the model, and a plain training loop to time beside seqloom."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Size:
    """The size of a Transformer. Default: Transformer-base."""

    vocabulary: int = 10_000
    width: int = 512
    layers: int = 6
    heads: int = 8
    feedforward: int = 2048


@dataclass(frozen=True)
class BatchShape:
    """Number of rows, and the padded lengths of sources and targets."""

    rows: int
    source: int
    target: int


BASE = Size()


def build_marian(size: Size, dropout: float = 0.1, use_cache: bool = False) -> Any:
    """A MarianMTModel with random weights. Requires transformers; downloads nothing."""
    from transformers import MarianConfig, MarianMTModel

    sides: dict[str, Any] = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", size.layers),
            ("attention_heads", size.heads),
            ("ffn_dim", size.feedforward),
        )
    }
    config = MarianConfig(
        vocab_size=size.vocabulary,
        d_model=size.width,
        **sides,
        dropout=dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=0,
        eos_token_id=2,
        forced_eos_token_id=None,
        decoder_start_token_id=0,
        use_cache=use_cache,
    )
    return MarianMTModel(config)


def time_training(
    shapes: Sequence[BatchShape],
    size: Size = BASE,
    device: str = "cuda",
    passes: int = 3,
    cudnn_attention: bool | None = None,
) -> list[float]:
    """Train `passes` times on batches of these shapes. Returns target tokens per second of each pass.

    The batches have no padding: every position is a real token. A step is forward, backward, clip
    and AdamW, with bf16 autocast and fp32 weights. The first pass includes the one-time costs of each
    new shape. cudnn_attention: None leaves the choice of kernels to torch.
    """
    torch.manual_seed(1)
    model = build_marian(size).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=device == "cuda")
    batches = [random_batch(shape, size.vocabulary, device) for shape in shapes]
    tokens = sum(shape.rows * shape.target for shape in shapes)
    with use_cudnn_attention(cudnn_attention):
        return [tokens / time_pass(model, optimizer, batches, device) for _ in range(passes)]


def random_batch(shape: BatchShape, vocabulary: int, device: str) -> dict[str, Tensor]:
    source = torch.randint(4, vocabulary, (shape.rows, shape.source), device=device)
    labels = torch.randint(4, vocabulary, (shape.rows, shape.target), device=device)
    return {"input_ids": source, "attention_mask": torch.ones_like(source), "labels": labels}


def time_pass(
    model: Any, optimizer: torch.optim.Optimizer, batches: Sequence[dict[str, Tensor]], device: str
) -> float:
    """Seconds for one training step per batch."""
    synchronise(device)
    start = time.perf_counter()
    for batch in batches:
        with torch.autocast(device, torch.bfloat16) if device == "cuda" else nullcontext():
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    synchronise(device)
    return time.perf_counter() - start


def synchronise(device: str) -> None:
    """Wait until all launched kernels are finished."""
    if device == "cuda":
        torch.cuda.synchronize()


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
