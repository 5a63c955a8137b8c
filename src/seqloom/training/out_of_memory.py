"""Out-of-memory retry: a batch that does not fit into GPU memory is split into smaller parts."""

from collections.abc import Callable, Sequence

import torch

from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import TrainingError
from seqloom.training.event_log import Event
from seqloom.training.session import Session
from seqloom.training.step import StepResult


def split_on_out_of_memory(
    step: Callable[[Sequence[Batch]], StepResult], batches: Sequence[Batch], session: Session
) -> StepResult:
    """Run a step. After an out-of-memory error, halve the largest batches and try again.

    A step divides every loss by the number of targets in all batches, so splitting a batch does not
    change the gradient.
    """
    parts = [part for batch in batches for part in _split(batch, session.max_part_tokens)]
    while True:
        try:
            return step(parts)
        except torch.OutOfMemoryError as error:
            session.optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            largest = max(parts, key=_tokens)
            if largest.size == 1:
                raise TrainingError(
                    f"a single row does not fit into the memory of {session.world.device} "
                    f"({_shape(largest)}): {str(error).splitlines()[0]}. Make the model smaller, or "
                    "drop long examples with data.filter"
                ) from error
            session.max_part_tokens = _tokens(largest) // 2
            settings = session.config.training
            text = (
                f"out of memory on {session.world.device} with {_shape(largest)}: batches of this "
                "size are now split in halves, with the same gradient. To avoid the retry, set "
                f"training.batch_tokens = {settings.batch_tokens // 2} and "
                f"training.accumulate = {settings.accumulate * 2}"
            )
            session.log(Event("note", session.step, {"text": text}))
            parts = [half for part in parts for half in _split(part, session.max_part_tokens)]


def _split(batch: Batch, max_tokens: int | None) -> list[Batch]:
    """Halve a batch until each part has at most `max_tokens` tokens or a single row."""
    if max_tokens is None or _tokens(batch) <= max_tokens or batch.size == 1:
        return [batch]
    return [part for half in batch.halves() for part in _split(half, max_tokens)]


def _tokens(batch: Batch) -> int:
    """Return the number of source positions or of target positions, whichever is larger.

    Padding is included.
    """
    source = batch.source.values.numel() if isinstance(batch.source, Padded) else 0
    return max(source, batch.targets.values.numel())


def _shape(batch: Batch) -> str:
    source = batch.source.values.shape[1] if isinstance(batch.source, Padded) else 0
    return f"{batch.size} rows of {source} source and {batch.targets.values.shape[1]} target tokens"
