"""Statistics of a split, collected in one pass over its examples."""

import hashlib
import heapq
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import SeqloomError
from seqloom.data.checks.characters import CharacterStatistics
from seqloom.data.corpus.filters import PairLengths, empty_side, reason_to_drop
from seqloom.data.corpus.vocabularies import Tokenizers
from seqloom.data.example import Example, InvalidLine, Split
from seqloom.data.readers.splits import InvalidLines, corpora_of, read_split
from seqloom.text.long_text import encode_target
from seqloom.text.vocabulary import UNKNOWN

PROGRESS_EVERY = 1_000
MAX_LONGEST = 3
"""Number of longest examples to keep."""


@dataclass(frozen=True)
class LengthHistogram:
    """Histogram of text lengths. counts[i] is the number of texts with a length from lows[i] to
    lows[i + 1] - 1. The last bin has no upper bound."""

    lows: ClassVar[tuple[int, ...]] = (0, 1, 6, 11, 21, 41, 81, 161, 321)
    counts: tuple[int, ...]


@dataclass
class TokenStatistics:
    """Token counts of the sources or the targets of a split."""

    lengths: "array[int]" = field(default_factory=lambda: array("i"))
    tokens: int = 0
    unknown: int = 0

    def add(self, ids: list[int]) -> None:
        """Count one text."""
        self.lengths.append(len(ids))
        self.tokens += len(ids)
        self.unknown += ids.count(UNKNOWN)

    @property
    def unknown_share(self) -> float:
        return self.unknown / max(self.tokens, 1)

    @property
    def histogram(self) -> LengthHistogram:
        edges = [*LengthHistogram.lows, np.iinfo(np.int64).max]
        counts, _ = np.histogram(np.asarray(self.lengths), bins=edges)
        return LengthHistogram(tuple(counts.tolist()))


@dataclass(frozen=True, order=True)
class LongExample:
    """One of the longest examples of a split."""

    longest: int
    """Number of tokens of the source or the target, whichever is longer."""
    where: str


class TextHashes:
    """A set of texts that stores only a 64-bit hash of each text."""

    def __init__(self) -> None:
        self._added = array("Q")
        self._sorted = np.zeros(0, dtype=np.uint64)

    def add(self, value: int) -> None:
        self._added.append(value)

    def finish(self) -> int:
        """Prepare for membership tests with `in`. Call it once, after the last `add`.

        Return the number of duplicates: hashes that were already in the set when they were added.
        """
        self._sorted = np.unique(np.frombuffer(self._added, dtype=np.uint64))
        repeated = len(self._added) - len(self._sorted)
        self._added = array("Q")
        return repeated

    def __contains__(self, value: int) -> bool:
        index = np.searchsorted(self._sorted, np.uint64(value))
        return bool(index < len(self._sorted) and self._sorted[index] == value)


@dataclass
class SplitStatistics:
    """Statistics of one split."""

    split: Split
    examples: int = 0
    repeated_pairs: int = 0
    """Number of examples that repeat an earlier example: the source and the target are equal."""
    repeated_sources: int = 0
    """Number of examples whose source equals the source of an earlier example."""
    identical: int = 0
    """Number of examples whose target equals their source."""
    empty: Counter[str] = field(default_factory=Counter)
    """Number of examples with an empty source, an empty target, or both. The keys are the results
    of `empty_side`."""
    first_empty: str = ""
    """file:line of the first example with an empty side."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Maps a reason to the number of training examples that the filters drop for this reason.
    Training examples counted in `empty` are included."""
    longest: list[LongExample] = field(default_factory=list)
    """The longest examples, longest first."""
    source: TokenStatistics | None = None
    """Token counts of the sources. None if the sources are not text or no tokenizer could be
    trained."""
    target: TokenStatistics | None = None
    """Token counts of the targets. None if no tokenizer could be trained."""
    kept: "array[int]" = field(default_factory=lambda: array("i"))
    """Indices of the examples that no filter drops."""
    pairs: TextHashes = field(default_factory=TextHashes)
    sources: TextHashes = field(default_factory=TextHashes)
    leaked_pairs: int = 0
    """Number of examples whose source-target pair is also in the training split."""
    leaked_sources: int = 0
    """Number of examples whose source is also in the training split. If there are no sources,
    targets are compared."""
    first_leak: str = ""
    """file:line of the first example counted in `leaked_sources`."""
    source_characters: CharacterStatistics = field(default_factory=CharacterStatistics)
    """Unusual characters of the sources. Sources that are not text are not examined."""
    target_characters: CharacterStatistics = field(default_factory=CharacterStatistics)
    """Unusual characters of the targets."""
    skipped_lines: InvalidLines = field(default_factory=InvalidLines)
    """Lines that cannot be used and that data.invalid_lines = "skip" skips."""
    problems: list[SeqloomError] = field(default_factory=list)
    """One error for each corpus that cannot be read completely."""


def collect_statistics(
    config: DataConfig,
    split: Split,
    tokenizers: Tokenizers | None,
    train: SplitStatistics | None,
    progress: Callable[[int], None],
) -> SplitStatistics:
    """Read a split and collect its statistics.

    tokenizers: tokenizers of the run. If None, tokens are not counted.
    train:      statistics of the training split, to detect examples of `split` that are also in
                the training split. None if `split` is the training split itself.
    progress:   called at intervals with the number of examples read so far
    """
    statistics = SplitStatistics(split)
    if tokenizers is not None:
        statistics.source = None if tokenizers.source is None else TokenStatistics()
        statistics.target = TokenStatistics()
    for example in _readable_examples(config, split, statistics):
        _count_duplicates(statistics, example, train)
        if tokenizers is None or tokenizers.source is not None:
            statistics.source_characters.add(example.source, example.where)
        statistics.target_characters.add(example.target, example.where)
        if tokenizers is not None:
            _count_tokens(statistics, example, tokenizers, config)
        statistics.examples += 1
        if statistics.examples % PROGRESS_EVERY == 0:
            progress(statistics.examples)
    progress(statistics.examples)
    statistics.repeated_pairs = statistics.pairs.finish()
    statistics.repeated_sources = statistics.sources.finish()
    statistics.longest.sort(reverse=True)
    return statistics


def _readable_examples(
    config: DataConfig, split: Split, statistics: SplitStatistics
) -> Iterator[Example]:
    """Yield the examples of all corpora. If reading a corpus raises an error, add the error to
    `statistics.problems` and continue with the next corpus."""

    def count_skipped(line: InvalidLine) -> None:
        statistics.skipped_lines.add(line)

    for corpus in corpora_of(config, split):
        try:
            one_corpus = config.model_copy(update={split: (corpus,), "replay": None})
            yield from read_split(one_corpus, split, count_skipped)
        except SeqloomError as error:
            statistics.problems.append(error)


def _hash(*texts: str) -> int:
    joined = "\0".join(texts).encode("utf-8")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big")


def _count_duplicates(
    statistics: SplitStatistics, example: Example, train: SplitStatistics | None
) -> None:
    source, target = example.source.strip(), example.target.strip()
    pair_hash, source_hash = _hash(source, target), _hash(source or target)
    statistics.pairs.add(pair_hash)
    statistics.sources.add(source_hash)
    statistics.identical += bool(source) and source == target
    if train is not None and source_hash in train.sources:
        statistics.leaked_sources += 1
        statistics.leaked_pairs += pair_hash in train.pairs
        statistics.first_leak = statistics.first_leak or example.where


def _count_tokens(
    statistics: SplitStatistics, example: Example, tokenizers: Tokenizers, config: DataConfig
) -> None:
    assert statistics.target is not None
    target = encode_target(tokenizers.target, example.target)
    statistics.target.add(target)
    lengths = PairLengths(None, len(target))
    if tokenizers.source is not None and statistics.source is not None:
        source = tokenizers.source.encode(example.source.strip())
        statistics.source.add(source)
        lengths = PairLengths(len(source), len(target))
    if empty := empty_side(lengths):
        statistics.empty[empty] += 1
        statistics.first_empty = statistics.first_empty or example.where
    reason = reason_to_drop(lengths, config.filter) if statistics.split == "train" else None
    if reason is None:
        statistics.kept.append(statistics.examples)
    else:
        statistics.dropped[reason] += 1
    candidate = LongExample(max(lengths.source or 0, lengths.target), example.where)
    if len(statistics.longest) < MAX_LONGEST:
        heapq.heappush(statistics.longest, candidate)
    else:
        heapq.heappushpop(statistics.longest, candidate)
