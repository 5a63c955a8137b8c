"""Prediction: an output in the user's words, with all that is known about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from seqloom.decoding.hypothesis import Hypothesis
from seqloom.metrics.alignment import align_words
from seqloom.tasks.task import Prepared
from seqloom.tasks.tokens import TokenTask
from seqloom.text.vocabulary import END, SPECIAL


@dataclass(frozen=True)
class Prediction:
    """One output.

    text:              what came out
    score:             log p / length^exponent; under minimum Bayes risk the expected utility,
                       0 to 100. Higher is better
    pieces:            the tokens of the text, "</s>" at the end if it was reached
    source_pieces:     the tokens that were read, "</s>" at the end; empty without a source
    log_probabilities: of each piece, under the model
    attention:         (pieces, source pieces) where each piece looked, averaged over layers and
                       heads; of an image, the cells of its grid in reading order. Rows sum to 1. None without attention, or if it was not asked for
    finished:          False if the output was cut off by the length limit
    alignment:         (source word, target word) pairs by that attention, counted from 0
    tokens:            the ids of the pieces
    """

    text: str
    score: float
    pieces: tuple[str, ...] = ()
    source_pieces: tuple[str, ...] = ()
    log_probabilities: tuple[float, ...] = ()
    attention: Tensor | None = None
    finished: bool = True
    alignment: tuple[tuple[int, int], ...] = ()
    tokens: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read."""
        attention = None if self.attention is None else self.attention.tolist()
        return {**self.__dict__, "attention": attention}


def present(task: TokenTask, prepared: Prepared, hypothesis: Hypothesis) -> Prediction:
    """A hypothesis in the user's words."""
    target = task.target_tokenizer
    ended = (END,) if hypothesis.finished else ()
    source_pieces: tuple[str, ...] = ()
    alignment: tuple[tuple[int, int], ...] = ()
    if prepared.source is not None and task.source_tokenizer is not None:
        source_pieces = (*task.source_tokenizer.pieces(prepared.source), SPECIAL[END])
        if hypothesis.attention is not None:
            alignment = _align(task, prepared, hypothesis)
    attention = hypothesis.attention
    return Prediction(
        text=target.decode(hypothesis.tokens[prepared.hidden :]),
        score=hypothesis.score,
        pieces=(*target.pieces(hypothesis.tokens), *(SPECIAL[END] for _ in ended)),
        source_pieces=source_pieces,
        log_probabilities=hypothesis.log_probabilities,
        attention=None if attention is None else _of_source(attention, prepared, source_pieces),
        finished=hypothesis.finished,
        alignment=alignment,
        tokens=(*hypothesis.tokens, *ended),
    )


def _of_source(attention: Tensor, prepared: Prepared, pieces: Sequence[str]) -> Tensor:
    """Without the padding behind a source; an image fills its grid."""
    return attention if prepared.image is not None else attention[:, : len(pieces)]


def _align(
    task: TokenTask, prepared: Prepared, hypothesis: Hypothesis
) -> tuple[tuple[int, int], ...]:
    """Between the words of the two texts as they are shown, which a hidden tag is none of."""
    assert task.source_tokenizer is not None
    assert prepared.source is not None
    assert hypothesis.attention is not None
    shown = task.target_tokenizer.word_of(hypothesis.tokens[prepared.hidden :])
    target_words = [*(-1 for _ in range(prepared.hidden)), *shown]
    source_words = [*task.source_tokenizer.word_of(prepared.source), -1]
    weights = hypothesis.attention[: len(target_words), : len(source_words)]
    return tuple(align_words(weights.numpy(), target_words, source_words))
