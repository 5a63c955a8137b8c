"""Out-of-memory retry: a batch that does not fit into GPU memory is split into smaller parts."""

from collections.abc import Callable, Sequence

import torch

from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import TrainingError
from seqloom.decoding.fast.captured import free_gpu_memory
from seqloom.training.event_log import Event
from seqloom.training.session import Session
from seqloom.training.step import SeededBatch, StepOutOfMemory, StepResult

NO_LIMIT = 2**62
"""The maximum batch size, in tokens, that a rank with enough memory proposes. All ranks use the
smallest proposal."""


def split_on_out_of_memory(
    step: Callable[[Sequence[SeededBatch]], StepResult],
    batches: Sequence[SeededBatch],
    session: Session,
) -> StepResult:
    """Run a step. After an out-of-memory error, halve the largest batches and try again.

    A step divides every loss by the number of targets in all batches, so splitting a batch does not
    change the gradient. All ranks repeat the step with the same maximum batch size.
    """
    parts = [part for batch in batches for part in _split(batch, session.max_part_tokens)]
    while True:
        try:
            return step(parts)
        except torch.OutOfMemoryError as error:
            is_own, message = getattr(error, "is_own", True), str(error).partition("\n")[0]
            if session.world.size > 1 and not isinstance(error, StepOutOfMemory):
                raise TrainingError(
                    f"{session.world.device} ran out of memory after the backward pass: {message}. "
                    "Continue with --resume --set training.activation_checkpointing=true, or train a "
                    "new run with a smaller training.batch_tokens"
                ) from error
        # The exception is released here. Its traceback references tensors.
        session.optimizer.zero_grad(set_to_none=True)
        free_gpu_memory()
        largest = max((part.batch for part in parts), key=_tokens)
        if is_own and largest.size == 1:
            raise TrainingError(
                f"a single row does not fit into the memory of {session.world.device} "
                f"({_shape(largest)}): {message}. Make the model smaller, or drop long examples with "
                "data.filter"
            )
        limit = _tokens(largest) // 2 if is_own else NO_LIMIT
        session.max_part_tokens = session.world.min(limit)
        where = f"{session.world.device} with {_shape(largest)}" if is_own else "another rank"
        text = (
            f"out of memory on {where}: batches of this size are now split in halves, with the same "
            "gradient. To avoid the retry, set "
            f"training.batch_tokens = {session.config.training.batch_tokens // 2} and "
            f"training.accumulate = {session.batches_per_step * 2}"
        )
        session.log(Event("note", session.step, {"text": text}))
        parts = [half for part in parts for half in _split(part, session.max_part_tokens)]


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
