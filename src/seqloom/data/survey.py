"""One walk through a split: everything about it that can be counted."""

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
from seqloom.data.clean import Lengths, emptiness, reason_to_drop
from seqloom.data.example import Example, Split
from seqloom.data.splits import corpora_of, read_split
from seqloom.text.long_text import encode_target
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import UNKNOWN

PROGRESS_EVERY = 1_000
EXTREMES = 3


@dataclass(frozen=True)
class Tokenizers:
    source: Tokenizer | None
    """None: a language model, which reads the target side alone."""
    target: Tokenizer


@dataclass(frozen=True)
class Histogram:
    """How many texts have a length in [lows[i], lows[i + 1]); the last bin has no upper end."""

    lows: ClassVar[tuple[int, ...]] = (0, 1, 6, 11, 21, 41, 81, 161, 321)
    counts: tuple[int, ...]


@dataclass
class Side:
    """The tokens of one side of a split."""

    lengths: "array[int]" = field(default_factory=lambda: array("i"))
    tokens: int = 0
    unknown: int = 0

    def add(self, ids: list[int]) -> None:
        self.lengths.append(len(ids))
        self.tokens += len(ids)
        self.unknown += ids.count(UNKNOWN)

    @property
    def unknown_share(self) -> float:
        return self.unknown / max(self.tokens, 1)

    @property
    def histogram(self) -> Histogram:
        edges = [*Histogram.lows, np.iinfo(np.int64).max]
        counts, _ = np.histogram(np.asarray(self.lengths), bins=edges)
        return Histogram(tuple(counts.tolist()))


@dataclass(frozen=True, order=True)
class Extreme:
    """One of the longest examples of a split."""

    longest: int
    """Tokens of its longer side."""
    where: str


class Hashes:
    """Texts, remembered as 64-bit hashes: eight bytes each, however many there are."""

    def __init__(self) -> None:
        self._added = array("Q")
        self._sorted = np.zeros(0, dtype=np.uint64)

    def add(self, value: int) -> None:
        self._added.append(value)

    def settle(self) -> int:
        """Make ready for `in`; returns how many were added that had been there before."""
        self._sorted = np.unique(np.frombuffer(self._added, dtype=np.uint64))
        repeated = len(self._added) - len(self._sorted)
        self._added = array("Q")
        return repeated

    def __contains__(self, value: int) -> bool:
        place = np.searchsorted(self._sorted, np.uint64(value))
        return bool(place < len(self._sorted) and self._sorted[place] == value)


@dataclass
class Survey:
    """What was counted in one split."""

    split: Split
    examples: int = 0
    repeated_pairs: int = 0
    repeated_sources: int = 0
    identical: int = 0
    """Examples whose target is their source."""
    empty: Counter[str] = field(default_factory=Counter)
    first_empty: str = ""
    dropped: Counter[str] = field(default_factory=Counter)
    """What the filters leave out, by reason; empty pairs included."""
    extremes: list[Extreme] = field(default_factory=list)
    """The longest first."""
    source: Side | None = None
    target: Side | None = None
    """None where there was no tokenizer to count with."""
    kept: "array[int]" = field(default_factory=lambda: array("i"))
    """Places of the examples that no filter drops."""
    pairs: Hashes = field(default_factory=Hashes)
    sources: Hashes = field(default_factory=Hashes)
    leaked_pairs: int = 0
    leaked_sources: int = 0
    """Examples that the training split holds too."""
    first_leak: str = ""
    problems: list[SeqloomError] = field(default_factory=list)
    """What stopped the reading of a corpus."""


def survey(
    config: DataConfig,
    split: Split,
    tokenizers: Tokenizers | None,
    train: Survey | None,
    progress: Callable[[int], None],
) -> Survey:
    """Walk through a split; `train` is the survey of the training split, to find leaks."""
    found = Survey(split)
    if tokenizers is not None:
        found.source = None if tokenizers.source is None else Side()
        found.target = Side()
    for example in _readable(config, split, found.problems):
        _compare(found, example, train)
        if tokenizers is not None:
            _measure(found, example, tokenizers, config)
        found.examples += 1
        if found.examples % PROGRESS_EVERY == 0:
            progress(found.examples)
    progress(found.examples)
    found.repeated_pairs = found.pairs.settle()
    found.repeated_sources = found.sources.settle()
    found.extremes.sort(reverse=True)
    return found


def _readable(config: DataConfig, split: Split, problems: list[SeqloomError]) -> Iterator[Example]:
    """All examples that can be read, corpus by corpus; one that cannot does not stop the next."""
    for corpus in corpora_of(config, split):
        try:
            yield from read_split(config.model_copy(update={split: (corpus,)}), split)
        except SeqloomError as error:
            problems.append(error)


def _hash(*texts: str) -> int:
    joined = "\0".join(texts).encode("utf-8")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big")


def _compare(found: Survey, example: Example, train: Survey | None) -> None:
    source, target = example.source.strip(), example.target.strip()
    pair_hash, source_hash = _hash(source, target), _hash(source or target)
    found.pairs.add(pair_hash)
    found.sources.add(source_hash)
    found.identical += bool(source) and source == target
    if train is not None and source_hash in train.sources:
        found.leaked_sources += 1
        found.leaked_pairs += pair_hash in train.pairs
        found.first_leak = found.first_leak or example.where


def _measure(found: Survey, example: Example, tokenizers: Tokenizers, config: DataConfig) -> None:
    assert found.target is not None
    target = encode_target(tokenizers.target, example.target)
    found.target.add(target)
    lengths = Lengths(None, len(target))
    if tokenizers.source is not None and found.source is not None:
        source = tokenizers.source.encode(example.source.strip())
        found.source.add(source)
        lengths = Lengths(len(source), len(target))
    if empty := emptiness(lengths):
        found.empty[empty] += 1
        found.first_empty = found.first_empty or example.where
    reason = reason_to_drop(lengths, config.filter) if found.split == "train" else None
    if reason is None:
        found.kept.append(found.examples)
    else:
        found.dropped[reason] += 1
    extreme = Extreme(max(lengths.source or 0, lengths.target), example.where)
    if len(found.extremes) < EXTREMES:
        heapq.heappush(found.extremes, extreme)
    else:
        heapq.heappushpop(found.extremes, extreme)
