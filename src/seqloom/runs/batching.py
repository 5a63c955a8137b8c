"""Batches for decoding: inputs grouped by length, halved when GPU memory runs out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, assert_never

import torch

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    ExhaustiveConfig,
    GreedyConfig,
    MinimumBayesRiskConfig,
    SampleConfig,
)
from seqloom.core.errors import DataError
from seqloom.decoding.search import SearchRequest
from seqloom.tasks.task import ModelInput

CPU_BATCH_TOKENS = 4_096
"""Source tokens of all hypotheses in a batch on a CPU. Larger batches are not faster."""
LAST_BATCH_FACTOR = 2
"""The last batch may exceed the budget by this factor, if it then holds all remaining inputs."""
IMAGE_TOKENS = 64
"""Budget of one image. Encoding an image on a CPU takes some megabytes, and batches of more than a
few dozen images are not faster."""
GPU_BYTES_PER_TOKEN = 2**21
"""GPU memory per token of the budget. A batch of a large model uses about a twentieth of it, and
several captured batch shapes are kept in memory."""

Batch = TypeVar("Batch")
Result = TypeVar("Result")


@dataclass(frozen=True)
class SearchBatch:
    """Inputs that are decoded together, their indices, and the search request."""

    inputs: Sequence[ModelInput]
    indices: Sequence[int]
    request: SearchRequest

    def only(self, rows: Sequence[int]) -> "SearchBatch":
        """The batch of these rows."""
        return SearchBatch(
            [self.inputs[row] for row in rows],
            [self.indices[row] for row in rows],
            self.request.only(rows),
        )

    def halves(self) -> list["SearchBatch"]:
        """Two halves; empty for a single row."""
        return [self.only(half) for half in halves(list(range(len(self.inputs))))]


def batch_token_budget(device: torch.device) -> int:
    """Maximum number of source tokens of all hypotheses in a batch."""
    if device.type != "cuda":
        return CPU_BATCH_TOKENS
    return int(torch.cuda.get_device_properties(device).total_memory // GPU_BYTES_PER_TOKEN)


def hypotheses_per_input(decoding: DecodingConfig) -> int:
    """Number of hypotheses that a search follows for each input."""
    match decoding:
        case MinimumBayesRiskConfig(samples=samples, beam=beam):
            return samples + beam
        case BeamConfig(width=width):
            return width
        case SampleConfig(samples=samples):
            return samples
        case GreedyConfig() | ExhaustiveConfig():
            return 1
        case _:
            assert_never(decoding)


def input_tokens(model_input: ModelInput) -> int:
    """Number of tokens of an input, END included."""
    if model_input.image is not None:
        return IMAGE_TOKENS
    source = model_input.prefix if model_input.source is None else model_input.source
    return len(source) + 1


def batches_by_length(
    lengths: Sequence[int], budget: int, last_batch_factor: int = LAST_BATCH_FACTOR
) -> Iterator[list[int]]:
    """Indices of inputs with similar lengths, the longest first.

    A torch search takes nearly as long for a few inputs as for many, so the last inputs join the
    batch before them if it stays within `last_batch_factor` budgets.
    """
    remaining = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while remaining:
        longest = lengths[remaining[0]]
        fits_in_one = longest * len(remaining) <= last_batch_factor * budget
        size = len(remaining) if fits_in_one else max(budget // longest, 1)
        yield remaining[:size]
        remaining = remaining[size:]


def run_in_halves(
    function: Callable[[Batch], Result], batch: Batch, split: Callable[[Batch], Sequence[Batch]]
) -> list[Result]:
    """Results of a batch, or of its halves if it does not fit into GPU memory, in order.

    split: returns the halves of a batch; empty if it cannot be split further
    """
    try:
        return [function(batch)]
    except torch.OutOfMemoryError as error:
        parts = split(batch)
        if not parts:
            first_line = str(error).partition("\n")[0].partition(". ")[0]
            raise DataError(
                f"a single line does not fit into GPU memory: {first_line}. Split the line, use a "
                "narrower beam or fewer samples, or free GPU memory"
            ) from error
    # Empty the cache only after the exception is released, because its traceback references the
    # tensors.
    torch.cuda.empty_cache()
    return [result for part in parts for result in run_in_halves(function, part, split)]


def halves(indices: list[int]) -> list[list[int]]:
    """Two halves of a list; empty for a single index."""
    middle = len(indices) // 2
    return [indices[:middle], indices[middle:]] if middle else []
