"""Batches for decoding. Inputs are grouped by length. A batch is halved if GPU memory runs out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from seqloom.core.errors import DataError
from seqloom.decoding.fast.captured import free_gpu_memory
from seqloom.decoding.search import SearchRequest
from seqloom.tasks.task import ModelInput

CPU_BATCH_TOKENS = 4_096
"""Token budget on a CPU: the maximum number of source tokens in a batch. If an input has several
hypotheses, its tokens are counted once per hypothesis. Larger batches are not faster."""
LAST_BATCH_FACTOR = 2
"""The last batch may be larger than the token budget by this factor."""
GPU_BYTES_PER_TOKEN = 2**21
"""The token budget on a GPU is the size of the GPU memory, divided by this number of bytes. A large
model needs only about a twentieth of this number per token. The rest of the memory is left for the
CUDA graphs of several batch shapes."""

Batch = TypeVar("Batch")
Result = TypeVar("Result")


@dataclass(frozen=True)
class SearchBatch:
    """Inputs that are decoded together.

    indices: indices of these inputs in the list of all inputs to decode
    request: options of the search for each input, for example the maximum length of its outputs
    """

    inputs: Sequence[ModelInput]
    indices: Sequence[int]
    request: SearchRequest

    def only(self, rows: Sequence[int]) -> "SearchBatch":
        """Return a batch that contains only some inputs of this batch.

        rows: indices of these inputs in this batch
        """
        return SearchBatch(
            [self.inputs[row] for row in rows],
            [self.indices[row] for row in rows],
            self.request.only(rows),
        )

    def halves(self) -> list["SearchBatch"]:
        """Split the batch into two halves. Returns an empty list if it has only one input."""
        return [self.only(half) for half in halves(list(range(len(self.inputs))))]

    def check_divisible(self, error: torch.OutOfMemoryError) -> None:
        """Raise a DataError if memory ran out although the batch has only one input."""
        check_divisible(len(self.inputs), error)


def batch_token_budget(device: torch.device) -> int:
    """Return the token budget: the maximum number of source tokens in a batch.

    If an input has several hypotheses, its tokens are counted once per hypothesis.
    """
    if device.type != "cuda":
        return CPU_BATCH_TOKENS
    return int(torch.cuda.get_device_properties(device).total_memory // GPU_BYTES_PER_TOKEN)


def input_tokens(model_input: ModelInput) -> int:
    """Return the size of an input in tokens, which is used to limit the size of a batch.

    This is `SourceInput.size`. For a language model, which has no source, the tokens of the prefix
    are counted instead, plus 1 for END.
    """
    source = model_input.source
    return len(model_input.prefix) + 1 if source is None else source.size


def batches_by_length(
    lengths: Sequence[int],
    budget: int,
    last_batch_factor: int = LAST_BATCH_FACTOR,
    round_size: Callable[[int], int] = lambda size: size,
) -> Iterator[list[int]]:
    """Group inputs of similar lengths into batches, the longest inputs first.

    Yields, for each batch, the indices of its inputs.

    budget:            maximum number of tokens in a batch, padding included. A single input may
                       exceed it.
    last_batch_factor: the last batch may contain up to `last_batch_factor` * `budget` tokens. This
                       avoids a small last batch, which would take nearly as long as a large one.
    round_size:        rounds the number of inputs of a batch down to a number that is decoded
                       without padding. Default: any number
    """
    remaining = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while remaining:
        longest = lengths[remaining[0]]
        fits_in_one = longest * len(remaining) <= last_batch_factor * budget
        size = len(remaining) if fits_in_one else round_size(max(budget // longest, 1))
        yield remaining[:size]
        remaining = remaining[size:]


def run_in_halves(
    function: Callable[[Batch], Result], batch: Batch, split: Callable[[Batch], Sequence[Batch]]
) -> list[Result]:
    """Apply a function to a batch. If GPU memory runs out, apply it to the halves of the batch.

    Halves are split again if necessary. Returns a list: the result of the whole batch, or the
    results of the parts into which it was split, in order.

    split: returns the two halves of a batch, or an empty list if the batch cannot be split
    """
    try:
        return [function(batch)]
    except torch.OutOfMemoryError as error:
        parts = split(batch)
        check_divisible(len(parts), error)
    # Free memory only after the exception is released: its traceback references the tensors.
    free_gpu_memory()
    return [result for part in parts for result in run_in_halves(function, part, split)]


def check_divisible(count: int, error: torch.OutOfMemoryError) -> None:
    """Raise a DataError if memory ran out for a single input.

    count: number of inputs or parts
    """
    if count < 2:
        first_line = str(error).partition("\n")[0].partition(". ")[0]
        raise DataError(
            f"a single line does not fit into GPU memory: {first_line}. Split the line, use a "
            "narrower beam or fewer samples, or free GPU memory"
        ) from error


def halves(indices: list[int]) -> list[list[int]]:
    """Split a list into two halves. A list of one index cannot be split: returns []."""
    middle = len(indices) // 2
    return [indices[:middle], indices[middle:]] if middle else []
