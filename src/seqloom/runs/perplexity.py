"""How probable a model finds a split, in every usual unit, each with what it counts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.text_windows import WindowShape, for_scoring
from seqloom.metrics.likelihood import (
    Likelihood,
    bits_per_character,
    nats_per_character,
    nats_per_token,
    perplexity,
    perplexity_per_word,
)
from seqloom.metrics.score import Score
from seqloom.runs.likelihood import summed_loss
from seqloom.runs.predictor import Predictor
from seqloom.text.running import newline_of

BATCH_TOKENS = 4_096


def sentence_scores(total: float, tokens: int, examples: Sequence[Example]) -> list[Score]:
    """Of texts that each end in END. total: -log p of all of them together."""
    texts = [example.target.strip() for example in examples]
    words = sum(len(text.split()) for text in texts)
    likelihood = Likelihood(-total, tokens, sum(map(len, texts)), words + len(texts))
    ends = f"{len(texts):,} END"
    return _signed(
        likelihood, f"{ends} among them", f"{ends} predicted as well, which are no characters"
    )


def running_text_scores(
    predictor: Predictor, examples: Sequence[Example], shape: WindowShape
) -> list[Score]:
    """Of one long text, each token of it predicted once. examples: its lines"""
    newline = newline_of(predictor.task.target_tokenizer)
    assert newline is not None, "a model of sentences"
    encode = predictor.task.target_tokenizer.encode
    ids = np.concatenate([np.array(encode(line.target), np.int32) for line in examples])
    windows = for_scoring(ids, shape, newline)
    limit, longest = predictor.model.max_target_length, int(windows.sizes.max())
    if limit is not None and longest > limit:
        raise DataError(
            f"windows of {longest} tokens are longer than the model's positions reach ({limit}); "
            f"set the length of the split to {limit} or less"
        )
    batches = windows.batches(BATCH_TOKENS)
    total, tokens = summed_loss(predictor.model, predictor.task, batches, predictor.device)
    characters = sum(len(line.target) for line in examples)
    words = sum(len(line.target.split()) + 1 for line in examples)
    ends = (
        f"{len(examples):,} ends of lines among them, no END; {shape.context:,} or more tokens "
        "before each, but at the beginning"
    )
    return _signed(Likelihood(-total, tokens, characters, words), ends, ends)


def _signed(likelihood: Likelihood, ends: str, beside: str) -> list[Score]:
    """The scores; ends, beside: what is said of what is no word and no character."""
    tokens = f"{likelihood.tokens:,} tokens, {ends}"
    words = f"{likelihood.words:,} words between spaces, {ends}"
    characters = f"{likelihood.characters:,} characters, {beside}"
    return [
        replace(perplexity(likelihood), signature=tokens),
        replace(perplexity_per_word(likelihood), signature=words),
        replace(nats_per_token(likelihood), signature=tokens),
        replace(nats_per_character(likelihood), signature=characters),
        replace(bits_per_character(likelihood), signature=characters),
    ]
