"""Choice of the training loop, the batch layout and the precision for a model and a device."""

import time
from typing import Literal, assert_never

import torch

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.config.schema.training import TeacherForcingConfig, TrainingConfig
from seqloom.core.signature import TargetSpec, Vectors
from seqloom.data.batching.bucketing import BucketLayout
from seqloom.data.batching.layout import BatchLayout, PaddedLayout
from seqloom.data.batching.packing import PackedLayout, row_length
from seqloom.data.corpus.dataset import Dataset
from seqloom.data.corpus.long_text import LongTextDataset, WindowLayout
from seqloom.models.seq2seq import Model
from seqloom.nn.fast.dispatch import find_triton, gpu_has_bf16
from seqloom.nn.fast.fused_functions import MAX_LENGTH
from seqloom.nn.fast.fused_transformer import supports

Batching = Literal["padded", "packed", "bucketed", "windows"]
Precision = Literal["fp32", "bf16"]

MATRIX_SIZES = (32, 256)
"""Numbers of rows of the square matrices whose products are timed, the smaller number first."""
MIN_SPEEDUP = 1.5
"""On a CPU, bf16 is used only if it makes matrix products at least this many times faster, because
it makes all other operations slower."""
MAX_SLOWDOWN = 4
"""If the product of small matrices is more than this many times slower in bf16 than in fp32, the
CPU has no bf16 instructions. The product of large matrices is then not timed, because it could
take a quarter of a second."""


MIN_COMPILED_WORK = 3e11
"""Minimum amount of work for which compiling the layers saves time. The work of a run is the number of
tokens of all its batches, times the sum of the widths of all layers.

On an H200, compiling Transformer-base takes 12 to 17 seconds more than capturing alone, and saves 6 to
8e-11 seconds per unit of work, compared with plain layers. On a slower GPU it saves more."""


def choose_batching(config: RunConfig, device: torch.device) -> Batching:
    """Return the batch layout of a new run: "padded", "bucketed", "packed" or "windows".

    The layout determines how examples are arranged in batches. A resumed run keeps its layout.
    """
    if config.data.is_long_text:
        return "windows"
    if config.training.batching != "auto":
        return config.training.batching
    if isinstance(config.task, ForecastConfig):
        return "padded"  # all windows have the same size
    if config.data.has_vectors:
        return "padded"
    if not uses_cuda_graphs(config, device):
        return "padded"
    can_pack = config.model.supports_packing and config.training.minimum_risk is None
    return "packed" if can_pack else "bucketed"


def uses_cuda_graphs(config: RunConfig, device: torch.device) -> bool:
    """Return True if training steps are captured as CUDA graphs and replayed.

    The setting `training.loop` decides. With "auto", steps are captured on a GPU, except for:

    - training without teacher forcing, where the operations differ from step to step
    - models with extensions that may run different operations for different data (`is_static`)

    With any setting, steps are not captured in these cases:

    - The sources are sequences of vectors (frames). Their batches have many different lengths.
    - Training uses FSDP, which allocates memory in every step.
    - Training uses activation checkpointing, which reads the random state of the GPU.
    """
    settings = config.training
    if config.data.has_vectors:
        return False
    if settings.parallel == "fsdp" or settings.activation_checkpointing:
        return False
    if settings.loop == "auto" and not config.model.is_static:
        return False
    if settings.loop == "auto":
        return device.type == "cuda" and isinstance(settings.decoder_input, TeacherForcingConfig)
    return settings.loop == "captured"


def compiles_layers(
    config: RunConfig, model: Model, layout: BatchLayout, precision: Precision, ranks: int
) -> bool:
    """Return True if the layers of the model are compiled before training steps are captured.

    The setting `training.compile` decides. With "auto", they are compiled if compilation takes less
    time than it saves, on a single rank and with packed batches. Only Transformers have packed
    batches. Other layouts have several batch shapes, and the layers would be compiled for each.
    Layers with fused kernels (`nn/fast/fused_transformer.py`) are faster than compiled layers.
    """
    settings = config.training
    if settings.compile != "auto":
        return settings.compile
    if ranks > 1 or not isinstance(layout, PackedLayout) or not find_triton():
        return False
    if precision == "bf16" and layout.length <= MAX_LENGTH and has_fused_layers(model):
        return False
    passes = 2 if settings.r_drop else 1
    widths = config.model.encoder.compiled_width + config.model.decoder.compiled_width
    return passes * settings.steps * settings.batch_tokens * widths >= MIN_COMPILED_WORK


def has_fused_layers(model: Model) -> bool:
    """Return True if there are fused kernels for all layers of the model."""
    return all(part.layer_stack and supports(part.layer_stack) for part in model.parts)


def choose_precision(
    settings: TrainingConfig, target: TargetSpec, device: torch.device
) -> Precision:
    """Choose the precision of training.

    The setting `training.precision` decides. With "auto", training uses bf16 on a GPU that supports
    bf16 and on a CPU that is faster with bf16, otherwise fp32. Models that predict vectors use fp32
    with "auto", because bf16 has only 8 significant bits.
    """
    if settings.precision != "auto":
        return settings.precision
    if isinstance(target, Vectors):
        return "fp32"
    if device.type == "cuda":
        return "bf16" if gpu_has_bf16(device) else "fp32"
    return "bf16" if bf16_is_faster_on_cpu() else "fp32"


def bf16_is_faster_on_cpu() -> bool:
    """True if matrix products are clearly faster in bf16 than in fp32 on this CPU.

    Measures the time of products in both precisions. On a CPU without bf16 instructions, bf16 can
    be 100 times slower.
    """
    small, large = MATRIX_SIZES
    if product_seconds(torch.bfloat16, small) > MAX_SLOWDOWN * product_seconds(
        torch.float32, small
    ):
        return False
    return MIN_SPEEDUP * product_seconds(torch.bfloat16, large) < product_seconds(
        torch.float32, large
    )


def product_seconds(dtype: torch.dtype, size: int) -> float:
    """Time the product of two square matrices four times. Returns the shortest time in seconds."""
    factor = torch.ones(size, size, dtype=dtype)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        torch.mm(factor, factor)
        times.append(time.perf_counter() - start)
    return min(times)


def build_layout(batching: Batching, batch_tokens: int, corpus: Dataset) -> BatchLayout:
    """Build a batch layout, which arranges examples in batches.

    batching:     name of the layout, such as "padded" or "packed"
    batch_tokens: maximum number of tokens in a batch
    """
    match batching:
        case "padded":
            return PaddedLayout(batch_tokens)
        case "packed":
            length = row_length(corpus.source_lengths, corpus.target_lengths)
            return PackedLayout(batch_tokens, length)
        case "bucketed":
            return BucketLayout(batch_tokens)
        case "windows":
            assert isinstance(corpus, LongTextDataset), "windows need a long text"
            return WindowLayout(batch_tokens, corpus.shape.length)
        case _:
            assert_never(batching)
