"""The loss of a model, summed over a corpus."""

from collections.abc import Callable, Iterable, Iterator

import torch

from seqloom.core.batch import Batch
from seqloom.data.batching.layout import PaddedLayout
from seqloom.data.corpus.dataset import Dataset
from seqloom.models.seq2seq import Model
from seqloom.runs.batching import run_in_halves
from seqloom.tasks.task import Task


def corpus_batches(corpus: Dataset, batch_tokens: int) -> Iterator[Batch]:
    """Every example of a corpus once, in batches."""
    sides = (corpus.source_lengths, corpus.target_lengths)
    # An example longer than the budget forms a batch of its own: evaluation drops nothing.
    longest = max(int(lengths.max()) + 1 for lengths in sides if lengths is not None)
    layout = PaddedLayout(max(batch_tokens, longest))
    for rows in layout.plan(*sides, seed=0, epoch=0):
        yield layout.gather(corpus, rows)


def corpus_loss(
    model: Model,
    task: Task,
    batches: Iterable[Batch],
    device: torch.device,
    check_signals: Callable[[], None] = lambda: None,
) -> tuple[float, int]:
    """The summed loss over all batches, and the number of targets.

    check_signals: called before each batch; may raise to stop
    """

    def batch_loss(batch: Batch) -> float:
        return float(task.loss(model, batch.to(device)))

    total, count = 0.0, 0
    with torch.inference_mode():
        for batch in batches:
            check_signals()
            total += sum(run_in_halves(batch_loss, batch, _halves))
            count += batch.num_targets
    return total, count


def _halves(batch: Batch) -> list[Batch]:
    return [] if batch.size == 1 else list(batch.halves())
