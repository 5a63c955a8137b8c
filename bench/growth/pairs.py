"""As many made-up sentence pairs as asked for, written at some hundred thousand a second."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.object_]]

WORDS = 30_000
CHUNK = 100_000
MEAN_WORDS = 10.0


def write_pairs(path: Path, pairs: int, seed: int = 0) -> None:
    """A TSV file. Words follow Zipf's law; a target says its source in other words, one in ten
    left out. The first n pairs of a longer file are the whole of a shorter one."""
    generator = np.random.default_rng(seed)
    source_words, target_words = (_words(np.random.default_rng(n)) for n in (1, 2))
    likely = 1 / np.arange(10, WORDS + 10)
    steps = np.cumsum(likely / likely.sum())
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, pairs, CHUNK):
            # A whole chunk is drawn even if less is wanted: a shorter file begins alike.
            lengths = generator.gamma(6.0, MEAN_WORDS / 6, CHUNK).astype(int) + 1
            drawn = np.searchsorted(steps, generator.random(lengths.sum()))
            spoken = generator.random(len(drawn)) < 0.9
            sources, targets = source_words[drawn], target_words[drawn[spoken]]
            ends = np.cumsum(lengths)
            spoken_ends = np.cumsum(spoken)[ends - 1]
            rows = zip(_joined(sources, ends), _joined(targets, spoken_ends), strict=True)
            file.writelines(f"{one}\t{other}\n" for one, other in islice(rows, pairs - start))


def _joined(words: Words, ends: "np.ndarray[Any, Any]") -> Iterator[str]:
    """Sentences of these words; one that has none says one thing at least."""
    listed, start = words.tolist(), 0
    for end in ends.tolist():
        yield " ".join(listed[start:end]) or "ne"
        start = end


def _words(generator: np.random.Generator) -> Words:
    """Made of syllables, so that there are subwords to find."""
    syllables = np.array([one + two for one in "bdfghklmnprstvwz" for two in "aeiou"], object)
    drawn = syllables[generator.integers(0, len(syllables), (WORDS, 4))]
    counts = generator.integers(1, 5, WORDS)
    made = ["".join(row[:count]) for row, count in zip(drawn, counts, strict=True)]
    return np.array(made, dtype=object)
