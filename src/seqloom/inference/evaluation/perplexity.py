"""The loss of a model on a corpus, as perplexity and related scores.

Each score has a signature that states which tokens, words or characters are counted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from seqloom.core.batch import Batch
from seqloom.core.errors import DataError
from seqloom.data.batching.layout import PaddedLayout
from seqloom.data.corpus.dataset import Dataset
from seqloom.data.corpus.long_text import WindowShape, scoring_windows
from seqloom.data.example import Example
from seqloom.inference.batching import run_in_halves
from seqloom.inference.predictor import Predictor
from seqloom.metrics.likelihood import (
    Likelihood,
    bits_per_character,
    nats_per_character,
    nats_per_token,
    perplexity,
    perplexity_per_word,
)
from seqloom.metrics.score import Score
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import Task
from seqloom.text.long_text import newline_id


def corpus_batches(corpus: Dataset, batch_tokens: int) -> Iterator[Batch]:
    """Yield every example of a corpus once, in batches."""
    sides = (corpus.source_lengths, corpus.target_lengths)
    # If an example is longer than `batch_tokens`, the budget is raised to its length, so that no
    # example is dropped.
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
    """Return the sum of the loss over all batches, and the number of targets in them.

    `Batch.num_targets` defines what counts as a target.

    check_signals: called before each batch. It may raise an exception to stop the computation.
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


BATCH_TOKENS = 4_096
"""Maximum number of tokens per batch when a long text is scored."""


def sentence_scores(total: float, tokens: int, examples: Sequence[Example]) -> list[Score]:
    """Compute perplexity and related scores of sentences. Each sentence ends with END.

    total:    sum of -log p over all target tokens
    tokens:   number of target tokens. END counts as a token.
    examples: the sentences
    """
    texts = [example.target.strip() for example in examples]
    words = sum(len(text.split()) for text in texts)
    likelihood = Likelihood(-total, tokens, sum(map(len, texts)), words + len(texts))
    ends = f"{len(texts):,} END"
    return _with_signatures(
        likelihood, f"including {ends}", f"and {ends}, which are not counted as characters"
    )


def long_text_scores(
    predictor: Predictor, examples: Sequence[Example], shape: WindowShape
) -> list[Score]:
    """Compute perplexity and related scores of one long text.

    The text is divided into windows. Each token is predicted in exactly one window.

    examples: the lines of the text
    shape:    size of the windows and of their context
    """
    newline = newline_id(predictor.task.target_tokenizer)
    assert newline is not None, "this model was trained on sentences"
    encode = predictor.task.target_tokenizer.encode
    ids = np.concatenate([np.array(encode(line.target), np.int32) for line in examples])
    windows = scoring_windows(ids, shape, newline)
    limit, longest = predictor.model.max_target_length, int(windows.sizes.max())
    if limit is not None and longest > limit:
        raise DataError(
            f"windows of {longest} tokens exceed the model's maximum length of {limit}. Set the "
            f"option 'length' of the split to {limit} or less"
        )
    batches = windows.batches(BATCH_TOKENS)
    total, tokens = corpus_loss(predictor.model, predictor.task, batches, predictor.device)
    characters = sum(len(line.target) for line in examples)
    words = sum(len(line.target.split()) + 1 for line in examples)
    note = (
        f"including {len(examples):,} newlines, without END; at least {shape.context:,} tokens of "
        "context, except at the start"
    )
    return _with_signatures(Likelihood(-total, tokens, characters, words), note, note)


def _with_signatures(likelihood: Likelihood, token_note: str, character_note: str) -> list[Score]:
    tokens = f"{likelihood.tokens:,} tokens, {token_note}"
    words = f"{likelihood.words:,} words between spaces, {token_note}"
    characters = f"{likelihood.characters:,} characters, {character_note}"
    return [
        replace(perplexity(likelihood), signature=tokens),
        replace(perplexity_per_word(likelihood), signature=words),
        replace(nats_per_token(likelihood), signature=tokens),
        replace(nats_per_character(likelihood), signature=characters),
        replace(bits_per_character(likelihood), signature=characters),
    ]
