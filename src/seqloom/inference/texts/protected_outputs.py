"""Inserts protected spans into the output of a model.

Protected spans are parts of the source that the model cannot translate, such as URLs and emoji.
"""

from collections.abc import Sequence

from seqloom.inference.prediction import Prediction
from seqloom.inference.texts.joining import word_starts
from seqloom.text.protected_spans import ProtectedText, insert_spans, insertion


def insert_missing_spans(
    protected: ProtectedText, output: Prediction, tag_words: int
) -> tuple[str, list[int]]:
    """Insert the inner spans of a source into the output of the model.

    Inner spans are protected parts of the source, such as URLs, that are neither at its start nor
    at its end. The model has read the source without them.

    The place of a span is found from the source words beside it, with the first rule that applies:

    1. If the word before the span is aligned, insert the span after the aligned output words.
    2. If the word after the span is aligned, insert the span before the aligned output words.
    3. Otherwise, use the relative place: insert a span from the middle of the source in the middle
       of the output.

    For a span that is attached to the word after it, such as <b>, rule 2 comes before rule 1.

    Returns the new text, and the index of the first character of each output word in the new text.

    tag_words: number of words in the tag that the model has read before the text. The indices of
               source words in `output.alignment` count these words too
    """
    read, kept = protected.without_inner()
    sources = [kept[start] for start in word_starts(read)]
    target_count = len(word_starts(output.text))
    links = [(source - tag_words, target) for source, target in output.alignment]
    insertions = []
    previous = 0
    for number, (start, _) in enumerate(protected.inner):
        words_before = sum(source < start for source in sources)
        joins_next = insertion(protected, number, 0).joins_next
        word = _aligned_place(links, words_before, joins_next)
        if word is None:
            word = _relative_place(words_before, len(sources), target_count)
        previous = max(previous, word)  # spans keep their order
        insertions.append(insertion(protected, number, previous))
    return insert_spans(output.text, insertions)


def _aligned_place(
    links: Sequence[tuple[int, int]], words_before: int, next_first: bool
) -> int | None:
    """Find the place of a protected span in the output, from the alignment of words.

    Returns the number of output words before the span. Returns None if neither the source word
    before the span nor the source word after it is aligned.

    links:        index pairs (source word, output word) of aligned words
    words_before: number of source words before the span
    next_first:   if both words are aligned: True to use the word after the span, False to use the
                  word before it
    """
    before = [target for source, target in links if source == words_before - 1]
    after = [target for source, target in links if source == words_before]
    if before and not (after and next_first):
        return max(before) + 1
    return min(after) if after else None


def _relative_place(words_before: int, source_count: int, target_count: int) -> int:
    if not source_count:
        return target_count
    return round(words_before / source_count * target_count)
