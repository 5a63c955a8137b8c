"""How probable a model finds what it should have said."""

from collections.abc import Callable, Iterable, Iterator

import torch

from seqloom.core.sequences import Batch
from seqloom.data.examples import Examples
from seqloom.data.layout import PaddedLayout
from seqloom.models.seq2seq import Model
from seqloom.runs.fitting import as_it_fits
from seqloom.tasks.task import Task


def corpus_batches(corpus: Examples, budget: int) -> Iterator[Batch]:
    """Every example of a corpus once, in batches."""
    sides = (corpus.source_lengths, corpus.target_lengths)
    # What is only measured has no budget to keep: a line that is longer comes alone.
    longest = max(int(lengths.max()) + 1 for lengths in sides if lengths is not None)
    layout = PaddedLayout(max(budget, longest))
    for rows in layout.plan(*sides, seed=0, epoch=0):
        yield layout.gather(corpus, rows)


def summed_loss(
    model: Model,
    task: Task,
    batches: Iterable[Batch],
    device: torch.device,
    pause: Callable[[], None] = lambda: None,
) -> tuple[float, int]:
    """-log p of all targets together, and how many there are. `pause` may raise to stop."""

    def loss(batch: Batch) -> float:
        return float(task.loss(model, batch.to(device)))

    total, count = 0.0, 0
    with torch.inference_mode():
        for batch in batches:
            pause()
            total += sum(as_it_fits(loss, batch, _halves))
            count += batch.num_targets
    return total, count


def _halves(batch: Batch) -> list[Batch]:
    return [] if batch.size == 1 else list(batch.halves())
