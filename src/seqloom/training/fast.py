"""Which loop, which batches and which precision suit a model and a machine."""

import time
from typing import Literal, assert_never

import torch

from seqloom.config.run import RunConfig
from seqloom.config.task import ForecastConfig
from seqloom.config.training import TeacherForcingConfig, TrainingConfig
from seqloom.core.signature import Target, Vectors
from seqloom.data.ahead import AheadStream
from seqloom.data.examples import Examples
from seqloom.data.layout import Layout, PaddedLayout
from seqloom.data.packing import BucketLayout, PackedLayout, row_length
from seqloom.data.stream import BatchStream
from seqloom.data.text_windows import WindowedText, WindowLayout

Batching = Literal["padded", "packed", "bucketed", "windows"]
Precision = Literal["fp32", "bf16"]

SIDES = (32, 256)
"""Of the matrices whose products are timed, the small ones first."""
PAYS = 1.5
"""How many times as fast bf16 must be on a CPU: all that is no matrix product gets slower."""
HOPELESS = 4
"""How many times as slow bf16 is at least, even for small matrices, on a CPU that has none of its
own. A large product may take it a quarter of a second, and need not be tried."""


def choose_batching(config: RunConfig, device: torch.device) -> Batching:
    """What a new run begins with, and then keeps to."""
    if config.data.is_running_text:
        return "windows"
    if config.training.batching != "auto":
        return config.training.batching
    if isinstance(config.task, ForecastConfig):
        return "padded"  # windows are all of one size
    if not is_recorded(config.training, device):
        return "padded"
    packs = config.model.takes_packed and config.training.risk is None
    return "packed" if packs else "bucketed"


def is_recorded(settings: TrainingConfig, device: torch.device) -> bool:
    """Are steps recorded and replayed? A step that is fed the model's own words differs each time."""
    if settings.loop == "auto":
        return device.type == "cuda" and isinstance(settings.feeding, TeacherForcingConfig)
    return settings.loop == "recorded"


def choose_precision(settings: TrainingConfig, target: Target, device: torch.device) -> Precision:
    """bf16 by itself only where it is known or measured to be faster, and only for tokens: what is
    put out there are scores to choose by, but a number that is put out is wrong by what eight bits
    cannot say."""
    if settings.precision != "auto":
        return settings.precision
    if isinstance(target, Vectors):
        return "fp32"
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    return "bf16" if bf16_pays() else "fp32"


def bf16_pays() -> bool:
    """Are products in bf16 faster on this CPU? Without instructions of its own, it may take
    hundreds of times as long."""
    small, large = SIDES
    if product_seconds(torch.bfloat16, small) > HOPELESS * product_seconds(torch.float32, small):
        return False
    return PAYS * product_seconds(torch.bfloat16, large) < product_seconds(torch.float32, large)


def product_seconds(dtype: torch.dtype, side: int) -> float:
    """The least time of a matrix product."""
    factor = torch.ones(side, side, dtype=dtype)
    times = []
    for _ in range(4):
        began = time.perf_counter()
        torch.mm(factor, factor)
        times.append(time.perf_counter() - began)
    return min(times)


def build_layout(batching: Batching, budget: int, corpus: Examples) -> Layout:
    match batching:
        case "padded":
            return PaddedLayout(budget)
        case "packed":
            length = row_length(corpus.source_lengths, corpus.target_lengths)
            return PackedLayout(budget, length)
        case "bucketed":
            return BucketLayout(budget)
        case "windows":
            assert isinstance(corpus, WindowedText), "only running text has windows"
            return WindowLayout(budget, corpus.shape.length)
        case _:
            assert_never(batching)


def ahead(stream: BatchStream) -> AheadStream:
    """The stream with its next batches ready in memory that a GPU can copy from by itself."""
    return AheadStream(stream, lambda batch: batch.map(torch.Tensor.pin_memory))
