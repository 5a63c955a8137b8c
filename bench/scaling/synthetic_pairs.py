"""Synthetic sentence pairs, written at about a hundred thousand per second."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

WordArray = np.ndarray[Any, np.dtype[np.object_]]

VOCABULARY = 30_000
CHUNK_PAIRS = 100_000
MEAN_WORDS = 10.0


def write_pairs(path: Path, pairs: int, seed: int = 0) -> None:
    """Write a TSV file.

    Words follow Zipf's law. A target replaces each word of its source by a word of the other
    vocabulary and omits one word in ten. A file of n pairs equals the first n pairs of a longer
    file with the same seed.
    """
    generator = np.random.default_rng(seed)
    source_words, target_words = (_random_words(np.random.default_rng(n)) for n in (1, 2))
    frequencies = 1 / np.arange(10, VOCABULARY + 10)
    cumulative = np.cumsum(frequencies / frequencies.sum())
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, pairs, CHUNK_PAIRS):
            # Always draw a full chunk, so that files of different sizes start with the same pairs.
            lengths = generator.gamma(6.0, MEAN_WORDS / 6, CHUNK_PAIRS).astype(int) + 1
            word_ids = np.searchsorted(cumulative, generator.random(lengths.sum()))
            kept = generator.random(len(word_ids)) < 0.9
            sources, targets = source_words[word_ids], target_words[word_ids[kept]]
            source_ends = np.cumsum(lengths)
            target_ends = np.cumsum(kept)[source_ends - 1]
            rows = zip(
                _sentences(sources, source_ends), _sentences(targets, target_ends), strict=True
            )
            file.writelines(
                f"{source}\t{target}\n" for source, target in islice(rows, pairs - start)
            )


def _sentences(words: WordArray, ends: "np.ndarray[Any, Any]") -> Iterator[str]:
    """Split the words into sentences at these ends. An empty sentence becomes "ne"."""
    word_list, start = words.tolist(), 0
    for end in ends.tolist():
        yield " ".join(word_list[start:end]) or "ne"
        start = end


def _random_words(generator: np.random.Generator) -> WordArray:
    """Random words made of syllables, so that a tokenizer finds subwords."""
    syllables = np.array(
        [first + second for first in "bdfghklmnprstvwz" for second in "aeiou"], object
    )
    rows = syllables[generator.integers(0, len(syllables), (VOCABULARY, 4))]
    counts = generator.integers(1, 5, VOCABULARY)
    words = ["".join(row[:count]) for row, count in zip(rows, counts, strict=True)]
    return np.array(words, dtype=object)
