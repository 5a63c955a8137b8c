"""Statistics of a split, collected in one pass over its examples.

Large training files are cut into parts, which several processes read in parallel.
"""

import hashlib
import heapq
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from seqloom.config.schema.corpora import HoldOutConfig
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import SeqloomError
from seqloom.core.processors import available_processors
from seqloom.data.checks.characters import CharacterStatistics
from seqloom.data.corpus.filters import PairLengths, empty_side, reason_to_drop
from seqloom.data.corpus.vocabularies import Tokenizers
from seqloom.data.example import Example, InvalidLine, Split
from seqloom.data.preparation.build import MIN_PARALLEL_BYTES
from seqloom.data.preparation.file_parts import FileParts, cut_corpus
from seqloom.data.preparation.workers import can_use_processes, run_in_processes
from seqloom.data.readers.splits import (
    InvalidLines,
    corpora_of,
    empty_corpus_error,
    hold_out_rule,
    read_split,
    read_with_group,
    reader_of,
    split_files,
    training_corpora,
)
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
        """Count the tokens of one text.

        ids: the token ids of the text
        """
        self.lengths.append(len(ids))
        self.tokens += len(ids)
        self.unknown += ids.count(UNKNOWN)

    def extend(self, other: "TokenStatistics") -> None:
        """Add the counts of `other` to the counts of this object."""
        self.lengths += other.lengths
        self.tokens += other.tokens
        self.unknown += other.unknown

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

    def extend(self, other: "TextHashes") -> None:
        """Add the texts of another set. Call this method before `finish`."""
        self._added += other._added

    def finish(self) -> int:
        """Sort the hashes, so that `in` works. Call this method once, after the last text.

        Return the number of texts that repeat an earlier text.
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
    """Number of examples whose source equals the source of an earlier example. If there are no
    sources, targets are compared."""
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
    """Lines that cannot be used. They are skipped if data.invalid_lines is "skip"."""
    problems: list[SeqloomError] = field(default_factory=list)
    """One error for each corpus that cannot be read completely."""

    def sides(self) -> list[tuple[str, TokenStatistics]]:
        """Return the token counts of the sources and of the targets, each with its name.

        Leaves out a side that is not text or has no lines.
        """
        sides = (("source", self.source), ("target", self.target))
        return [(name, side) for name, side in sides if side is not None and len(side.lengths)]

    def extend(self, other: "SplitStatistics") -> None:
        """Add the statistics of a later part of the training split.

        The fields `skipped_lines` and `problems` stay unchanged: the caller handles them.
        """
        self.kept.extend(self.examples + index for index in other.kept)
        self.examples += other.examples
        self.identical += other.identical
        self.empty += other.empty
        self.first_empty = self.first_empty or other.first_empty
        self.dropped += other.dropped
        self.longest = heapq.nlargest(MAX_LONGEST, self.longest + other.longest)
        for mine, added in ((self.source, other.source), (self.target, other.target)):
            if mine is not None and added is not None:
                mine.extend(added)
        self.pairs.extend(other.pairs)
        self.sources.extend(other.sources)
        self.source_characters.extend(other.source_characters)
        self.target_characters.extend(other.target_characters)


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
    statistics = _no_examples(split, tokenizers)
    for corpus in corpora_of(config, split):
        one_corpus = config.model_copy(update={split: (corpus,), "replay": None})
        try:
            if parts := _parts_for_processes(one_corpus, split, tokenizers):
                _count_in_processes(statistics, one_corpus, parts, tokenizers, progress)
                continue
            for example in read_split(one_corpus, split, statistics.skipped_lines.add):
                _count_example(statistics, example, tokenizers, config, train)
                if statistics.examples % PROGRESS_EVERY == 0:
                    progress(statistics.examples)
        except SeqloomError as error:
            statistics.problems.append(error)
    progress(statistics.examples)
    statistics.repeated_pairs = statistics.pairs.finish()
    statistics.repeated_sources = statistics.sources.finish()
    statistics.longest.sort(reverse=True)
    return statistics


def _no_examples(split: Split, tokenizers: Tokenizers | None) -> SplitStatistics:
    statistics = SplitStatistics(split)
    if tokenizers is not None:
        statistics.source = None if tokenizers.source is None else TokenStatistics()
        statistics.target = TokenStatistics()
    return statistics


def _parts_for_processes(
    config: DataConfig, split: Split, tokenizers: Tokenizers | None
) -> list[FileParts]:
    """Return the parts into which a training corpus is cut for several processes.

    The list is empty if a single process must read the corpus, for one of these reasons:

    - the corpus is small, cannot be cut, or is not a training corpus
    - there is only one worker
    - worker processes cannot be used (see `can_use_processes`)

    config: data settings with a single corpus in `split`
    """
    (corpus,) = corpora_of(config, split)
    is_small = sum(path.stat().st_size for path in split_files(config, split)) < MIN_PARALLEL_BYTES
    if split != "train" or is_small or _worker_count(config) == 1:
        return []
    if not can_use_processes((config, tokenizers)):
        return []
    if isinstance(corpus, HoldOutConfig):
        return []
    parts, _ = cut_corpus(reader_of(config, corpus, split)) or ([], 0)
    return parts if len(parts) > 1 else []


def _worker_count(config: DataConfig) -> int:
    return config.workers or available_processors()


def _count_in_processes(
    statistics: SplitStatistics,
    config: DataConfig,
    parts: list[FileParts],
    tokenizers: Tokenizers | None,
    progress: Callable[[int], None],
) -> None:
    """Count the examples of a training corpus and add the counts to `statistics`. Several processes
    read the parts of the corpus."""
    before = statistics.examples
    counted = run_in_processes(
        partial(_part_statistics, config, tokenizers),
        parts,
        min(_worker_count(config), len(parts)),
        lambda read: progress(before + read),
    )
    invalid = InvalidLines()
    for part in counted:
        statistics.extend(part)
        invalid.extend(part.skipped_lines)
    if problems := [error for part in counted for error in part.problems]:
        raise problems[0]
    if config.invalid_lines == "error" and invalid.count:
        raise invalid.error()
    statistics.skipped_lines.extend(invalid)
    if statistics.examples == before:
        (corpus,) = training_corpora(config)
        raise empty_corpus_error(config, corpus, "train")


def _part_statistics(
    config: DataConfig,
    tokenizers: Tokenizers | None,
    parts: FileParts,
    progress: Callable[[int], None],
) -> SplitStatistics:
    """Return the statistics of a part of a training corpus.

    Invalid lines are only counted here. If data.invalid_lines is "error", the caller raises the
    error.

    config:   data settings with a single training corpus
    parts:    the part of the corpus to read
    progress: called at intervals with the number of examples counted so far
    """
    statistics = _no_examples("train", tokenizers)
    (corpus,) = training_corpora(config)
    split_of = hold_out_rule(config)
    try:
        for number, record in enumerate(read_with_group(config, corpus, "train", parts), start=1):
            if isinstance(record, InvalidLine):
                statistics.skipped_lines.add(record)
            elif split_of is None or split_of(record) == "train":
                _count_example(statistics, record, tokenizers, config, None)
            if number % PROGRESS_EVERY == 0:
                progress(statistics.examples)
    except SeqloomError as error:
        statistics.problems.append(error)
    progress(statistics.examples)
    return statistics


def _count_example(
    statistics: SplitStatistics,
    example: Example,
    tokenizers: Tokenizers | None,
    config: DataConfig,
    train: SplitStatistics | None,
) -> None:
    _count_duplicates(statistics, example, train)
    if tokenizers is None or tokenizers.source is not None:
        statistics.source_characters.add(example.source, example.where)
    statistics.target_characters.add(example.target, example.where)
    if tokenizers is not None:
        _count_tokens(statistics, example, tokenizers, config)
    statistics.examples += 1


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
