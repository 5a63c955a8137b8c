"""Out-of-memory retry: a batch that does not fit into GPU memory is split into smaller parts."""

from collections.abc import Sequence

import torch

from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import TrainingError
from seqloom.decoding.fast.captured import free_gpu_memory
from seqloom.training.event_log import note
from seqloom.training.session import Session
from seqloom.training.step import SeededBatch, StepOutOfMemory

NO_LIMIT = 2**62
"""The maximum batch size, in tokens, that a rank with enough memory proposes. All ranks use the
smallest proposal."""


def own_problem(error: torch.OutOfMemoryError, session: Session) -> str | None:
    """Return the message of an out-of-memory error; None if another rank ran out of memory.

    Raises a TrainingError if the step cannot be repeated.
    """
    message = str(error).partition("\n")[0]
    if session.world.size > 1 and not isinstance(error, StepOutOfMemory):
        raise TrainingError(
            f"{session.world.device} ran out of memory after the backward pass: {message}. "
            "Continue with --resume --set training.activation_checkpointing=true, or train a "
            "new run with a smaller training.batch_tokens"
        ) from error
    return message if getattr(error, "is_own", True) else None


def halve_largest(
    parts: Sequence[SeededBatch], problem: str | None, session: Session
) -> list[SeededBatch]:
    """Halve the largest batches of a step that ran out of memory on a rank.

    A step divides every loss by the number of targets in all batches, so splitting a batch does not
    change the gradient. All ranks repeat the step with the same maximum batch size. Later steps split
    their batches in the same way.

    problem: message of the error; None if another rank ran out of memory
    """
    world = session.world
    session.optimizer.zero_grad(set_to_none=True)
    free_gpu_memory()
    largest = max((part.batch for part in parts), key=_tokens)
    if problem is not None and largest.size == 1:
        raise TrainingError(
            f"a single row does not fit into the memory of {world.device} "
            f"({_shape(largest)}): {problem}. Make the model smaller, or drop long examples with "
            "data.filter"
        )
    session.max_part_tokens = world.min(NO_LIMIT if problem is None else _tokens(largest) // 2)
    where = "another rank" if problem is None else f"{world.device} with {_shape(largest)}"
    text = (
        f"out of memory on {where}: batches of this size are now split in halves, with the same "
        "gradient. To avoid the retry, set "
        f"training.batch_tokens = {session.config.training.batch_tokens // 2} and "
        f"training.accumulate = {session.batches_per_step * 2}"
    )
    session.log(note(text, session.step))
    return split_batches(parts, session.max_part_tokens)


def split_batches(batches: Sequence[SeededBatch], max_tokens: int | None) -> list[SeededBatch]:
    """Halve each batch until its parts have at most `max_tokens` tokens. None means no limit."""
    return [part for batch in batches for part in _split(batch, max_tokens)]


def _split(part: SeededBatch, max_tokens: int | None) -> list[SeededBatch]:
    """Halve a batch until each part has at most `max_tokens` tokens or a single row.

    The first part keeps the random seed of the batch. The other parts have no seed: their random
    numbers continue those of the first part.
    """
    batch = part.batch
    if max_tokens is None or _tokens(batch) <= max_tokens or batch.size == 1:
        return [part]
    first, second = batch.halves()
    return [
        *_split(SeededBatch(first, part.seed), max_tokens),
        *_split(SeededBatch(second), max_tokens),
    ]


def _tokens(batch: Batch) -> int:
    """Return the number of source tokens or of target tokens, whichever is larger.

    Padding tokens are counted, too.
    """
    source = batch.source.values.numel() if isinstance(batch.source, Padded) else 0
    return max(source, batch.targets.values.numel())


def _shape(batch: Batch) -> str:
    source = batch.source.values.shape[1] if isinstance(batch.source, Padded) else 0
    return f"{batch.size} rows of {source} source and {batch.targets.values.shape[1]} target tokens"
