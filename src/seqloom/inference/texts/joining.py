"""Joins the outputs of the segments of a text into one prediction.

- Output texts are joined with the white space that separates the segments in the source text.
- The score is the mean of the scores of the segments, weighted by their numbers of pieces.
- Pieces, tokens and log-probabilities are concatenated.
- Attention weights are block-diagonal: a piece attends only to the source of its own segment.
- Word indices refer to the words of the joined text and of the whole source text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from seqloom.inference.prediction import OutputAttention, Prediction
from seqloom.metrics.subword_merging import NO_WORD

_WORD = re.compile(r"\S+")
Item = TypeVar("Item")


@dataclass(frozen=True)
class WordMaps:
    """New word indices for an output, for example the indices of its words in a longer text.

    In each list, item i is the new index of word i, or -1 if this word has no new index.

    aligned: new indices of the source words in `Prediction.alignment`
    source:  new indices of the source words in `Prediction.source_word_of`. If seqloom added a
             language tag before the source, these words include the words of the tag
    target:  new indices of output words
    """

    aligned: Sequence[int]
    source: Sequence[int]
    target: Sequence[int]

    def apply(self, values: OutputAttention) -> OutputAttention:
        """Return a copy with new word indices, taken from the lists of this object.

        Removes an alignment link if one of its words has no new index.
        """
        links = dict.fromkeys(
            (_look_up(self.aligned, source), _look_up(self.target, target))
            for source, target in values.alignment
        )
        return replace(
            values,
            alignment=tuple(link for link in links if NO_WORD not in link),
            word_of=tuple(_look_up(self.target, word) for word in values.word_of),
            source_word_of=tuple(_look_up(self.source, word) for word in values.source_word_of),
        )


def _look_up(words: Sequence[int], word: int) -> int:
    if word == NO_WORD or not words:
        return NO_WORD
    # The decoded text can have more words than the original, if it contains special characters.
    return words[min(word, len(words) - 1)]


def word_starts(text: str) -> list[int]:
    """Return the index of the first character of each word."""
    return [match.start() for match in _WORD.finditer(text)]


def words_by_position(text: str) -> list[int]:
    """Return, for each character of a text, the index of its word.

    White space counts as part of the word after it. White space at the end of the text is left out.
    """
    words: list[int] = []
    for number, match in enumerate(_WORD.finditer(text)):
        words += [number] * (match.end() - len(words))
    return words


def words_at(text: str, positions: Sequence[int]) -> list[int]:
    """Return the index of the word at each position. A position is the index of a character."""
    words = words_by_position(text)
    return [words[position] for position in positions]


@dataclass(frozen=True)
class OutputSegment:
    """The prediction for one segment of a text, and where its words are in the whole text.

    A position is the index of a character. The source text can start with a language tag, which
    the user wrote or seqloom added. The model can read this tag in front of every segment.

    aligned_at: position of each word of the segment, in the source text without an added tag
    source_at:  position of each word of the segment, in the source text with the added tag. If the
                model read a tag that is not part of the segment, the position of the tag is first.
    target_at:  position of the segment's output in the whole output
    """

    prediction: Prediction
    aligned_at: Sequence[int]
    source_at: Sequence[int]
    target_at: int


def join_outputs(
    text: str,
    source: str,
    source_text: str,
    segments: Sequence[OutputSegment],
    *,
    attention: bool = True,
) -> Prediction:
    """Combine the predictions for the segments of a source text into one prediction.

    The output texts are already joined. This function joins their tokens, scores, alignments and
    attention weights.

    text:        the outputs of all segments, already joined
    source:      the source text, without an added tag
    source_text: the added tag, if there is one, followed by `source`
    attention:   if True, the attention weights are joined as well
    """
    source_words, text_words = words_by_position(source), words_by_position(text)
    source_text_words = words_by_position(source_text)
    mapped = []
    for each in segments:
        target = [each.target_at + start for start in word_starts(each.prediction.text)]
        maps = WordMaps(
            [source_words[position] for position in each.aligned_at],
            [source_text_words[position] for position in each.source_at],
            [text_words[position] for position in target],
        )
        mapped.append(maps.apply(each.prediction.read_attention()))
    outputs = [each.prediction for each in segments]
    with_pieces = [values for values, each in zip(mapped, outputs, strict=True) if not each.copied]
    with_attention = with_pieces if attention else []
    values = OutputAttention(
        attention=_block_diagonal([each.attention for each in with_attention]),
        heads=_block_diagonal([each.heads for each in with_attention]),
        alignment=tuple(dict.fromkeys(_concatenate([each.alignment for each in mapped]))),
        alignment_weights=_block_diagonal([each.alignment_weights for each in with_attention]),
        word_of=_concatenate([each.word_of for each in mapped]),
        source_word_of=_concatenate([each.source_word_of for each in mapped]),
        source_text=source_text if any(each.source_text for each in mapped) else "",
    )
    return Prediction(
        text=text,
        score=_mean_score(outputs),
        pieces=_concatenate([each.pieces for each in outputs]),
        source_pieces=_concatenate([each.source_pieces for each in outputs]),
        log_probabilities=_concatenate([each.log_probabilities for each in outputs]),
        finished=all(each.finished for each in outputs),
        tokens=_concatenate([each.tokens for each in outputs]),
        warnings=tuple(dict.fromkeys(_concatenate([each.warnings for each in outputs]))),
        unknown=_concatenate([each.unknown for each in outputs]),
        copied=not with_pieces,
        copied_parts=_concatenate([each.copied_parts for each in outputs]),
        segments=tuple(outputs),
        attention_values=values,
    )


def _mean_score(outputs: Sequence[Prediction]) -> float:
    pieces = sum(len(output.pieces) for output in outputs)
    if not pieces:
        return 0.0
    return sum(output.score * len(output.pieces) for output in outputs if output.pieces) / pieces


def _concatenate(parts: Sequence[tuple[Item, ...]]) -> tuple[Item, ...]:
    return tuple(item for part in parts for item in part)


def _block_diagonal(blocks: Sequence[Tensor | None]) -> Tensor | None:
    """Join tensors (T, …, S) into one of shape (ΣT, …, ΣS) that is 0 outside the blocks."""
    tensors = [block for block in blocks if block is not None]
    if not tensors or len(tensors) < len(blocks):
        return None
    rows = sum(block.shape[0] for block in tensors)
    columns = sum(block.shape[-1] for block in tensors)
    joined = torch.zeros(rows, *tensors[0].shape[1:-1], columns, dtype=tensors[0].dtype)
    row = column = 0
    for block in tensors:
        joined[row : row + block.shape[0], ..., column : column + block.shape[-1]] = block
        row, column = row + block.shape[0], column + block.shape[-1]
    return joined
