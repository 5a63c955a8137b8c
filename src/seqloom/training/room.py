"""What to do when a batch does not fit into a GPU's memory: take it in smaller parts."""

from collections.abc import Callable, Sequence

import torch

from seqloom.core.errors import TrainingError
from seqloom.core.sequences import Batch, Padded
from seqloom.training.journal import Event
from seqloom.training.session import Session
from seqloom.training.step import StepResult


def in_parts_that_fit(
    step: Callable[[Sequence[Batch]], StepResult], batches: Sequence[Batch], session: Session
) -> StepResult:
    """Take the step; what does not fit is halved, and halved again, until it does.

    Losses are summed before they are divided, so parts change nothing but the time it takes.
    """
    parts = [part for batch in batches for part in _parts(batch, session.largest)]
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
                    "leave long examples out with data.filter"
                ) from error
            session.largest = _tokens(largest) // 2
            text = (
                f"out of memory on {session.world.device} with {_shape(largest)}: such batches are "
                "trained in halves from here on, with the same gradient; to have it so from the "
                f"start set training.batch_tokens = {session.config.training.batch_tokens // 2} and "
                f"training.accumulate = {session.config.training.accumulate * 2}"
            )
            session.tell(Event("note", session.step, {"text": text}))
            parts = [half for part in parts for half in _parts(part, session.largest)]


def _parts(batch: Batch, largest: int | None) -> list[Batch]:
    """The batch in pieces of no more tokens than this, as far as rows can be parted."""
    if largest is None or _tokens(batch) <= largest or batch.size == 1:
        return [batch]
    return [part for half in batch.halves() for part in _parts(half, largest)]


def _tokens(batch: Batch) -> int:
    """Positions of the longer side."""
    read = batch.source.values.numel() if isinstance(batch.source, Padded) else 0
    return max(read, batch.targets.values.numel())


def _shape(batch: Batch) -> str:
    read = batch.source.values.shape[1] if isinstance(batch.source, Padded) else 0
    return f"{batch.size} rows of {read} source and {batch.targets.values.shape[1]} target tokens"
