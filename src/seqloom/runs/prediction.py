"""Prediction: an output in the user's words, with all that is known about it."""

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from seqloom.decoding.hypothesis import Hypothesis
from seqloom.metrics.alignment import align_words
from seqloom.metrics.merging import NO_WORD, AttentionMap, merge_labels, merge_words
from seqloom.runs.heads import Keeping, Looks
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
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
                       heads; of an image, the cells of its grid in reading order. Rows sum to 1.
                       None without attention, or if it was not asked for
    finished:          False if the output was cut off by the length limit
    alignment:         (source word, target word) pairs by attention, counted from 0: by that of the
                       heads that were found to align best, else by the mean of all
    heads:             (pieces, layers, heads, source pieces) the same layer by layer and head by
                       head, if it was asked for
    aligning:          (pieces, source pieces) the attention that the alignment is read from
    word_of:           the number of the word of the text that each piece is part of, -1 for none
    source_word_of:    the same for the source pieces
    source_text:       the source as its pieces spell it
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
    heads: Tensor | None = None
    aligning: Tensor | None = None
    word_of: tuple[int, ...] = ()
    source_word_of: tuple[int, ...] = ()
    source_text: str = ""
    tokens: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read; what it looked by, where it looked."""
        own = {name: value for name, value in self.__dict__.items() if name not in _INSIDE}
        attention = None if self.attention is None else self.attention.tolist()
        heads = {} if self.heads is None else {"heads": self.heads.tolist()}
        return {**own, "attention": attention, **heads}

    def look(self, weights: Tensor, *, merged: bool = True) -> AttentionMap:
        """Attention with its labels: (pieces, …, source pieces), between words if merged.

        weights: `attention`, `aligning`, `heads`, or a mean of some of these
        """
        if not merged:
            return AttentionMap(self.pieces, self.source_pieces, weights.double().numpy())
        return AttentionMap(
            merge_labels(self.pieces, self.word_of, self.text),
            merge_labels(self.source_pieces, self.source_word_of, self.source_text),
            merge_words(weights.double().numpy(), self.word_of, self.source_word_of),
        )


_INSIDE = {"heads", "aligning", "word_of", "source_word_of", "source_text", "tokens"}
"""What a program that reads an output has no need of, or asks for by itself."""


def present(
    task: TokenTask, prepared: ModelInput, hypothesis: Hypothesis, keeping: Keeping | None = None
) -> Prediction:
    """A hypothesis in the user's words.

    keeping: how its attention is read; None where none was kept
    """
    target, tokens = task.target_tokenizer, hypothesis.tokens
    ended = (END,) if hypothesis.finished else ()
    source_pieces: tuple[str, ...] = ()
    if prepared.source is not None and task.source_tokenizer is not None:
        source_pieces = (*task.source_tokenizer.pieces(prepared.source), SPECIAL[END])
    plain = Prediction(
        text=target.decode(tokens[prepared.hidden_prefix :]),
        score=hypothesis.score,
        pieces=(*target.pieces(tokens), *(SPECIAL[end] for end in ended)),
        source_pieces=source_pieces,
        log_probabilities=hypothesis.log_probabilities,
        finished=hypothesis.finished,
        tokens=(*tokens, *ended),
    )
    if hypothesis.attention is None or keeping is None:
        return plain
    looks = keeping.read(hypothesis.attention[: len(plain.pieces)])
    if prepared.image is not None:  # fills its grid, and has no words to be aligned with
        return replace(plain, attention=looks.mean, heads=looks.heads)
    return _seen(_in_words(plain, task, prepared, tokens), looks)


def _in_words(
    plain: Prediction, task: TokenTask, prepared: ModelInput, tokens: tuple[int, ...]
) -> Prediction:
    """With the words that pieces are parts of. END is none, and neither is a hidden tag."""
    tokenizer, source = task.source_tokenizer, prepared.source
    assert tokenizer is not None
    assert source is not None
    hidden = [NO_WORD] * prepared.hidden_prefix
    words = [*hidden, *task.target_tokenizer.word_of(tokens[prepared.hidden_prefix :])]
    ended = [NO_WORD] * (len(plain.pieces) - len(words))
    return replace(
        plain,
        word_of=(*words, *ended),
        source_word_of=(*tokenizer.word_of(source), NO_WORD),
        source_text=tokenizer.decode(source),
    )


def _seen(plain: Prediction, looks: Looks) -> Prediction:
    """With where it looked, without the padding behind the source."""
    read = len(plain.source_pieces)
    aligning = looks.aligning[:, :read]
    return replace(
        plain,
        attention=looks.mean[:, :read],
        heads=None if looks.heads is None else looks.heads[..., :read],
        aligning=aligning,
        alignment=tuple(align_words(aligning.numpy(), plain.word_of, plain.source_word_of)),
    )
