"""Scores by the length of the source: where does a model begin to fail?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.core.errors import DataError
from seqloom.metrics.score import Metric, References, Score, check_references


@dataclass(frozen=True)
class Bucket:
    """The sentences whose source has from `shortest` to `longest` words, both included."""

    shortest: int
    longest: int
    sentences: int
    score: Score


def by_length(
    metric: Metric,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: References,
    most: int = 5,
    at_least: int = 50,
) -> list[Bucket]:
    """The metric on short sources, on longer ones, …; words are what white space separates.

    There are at most `most` buckets of about equal size, and none has fewer than `at_least`
    sentences, unless all together are fewer.
    """
    check_references(hypotheses, references)
    if len(sources) != len(hypotheses):
        raise DataError(
            f"cannot be scored: there are {len(sources):,} sources and {len(hypotheses):,} "
            "hypotheses; give one hypothesis for each source"
        )
    words = [len(source.split()) for source in sources]
    buckets = []
    for shortest, longest in bounds(words, most, at_least):
        chosen = [place for place, count in enumerate(words) if shortest <= count <= longest]
        score = metric(
            [hypotheses[place] for place in chosen], [references[place] for place in chosen]
        )
        buckets.append(Bucket(shortest, longest, len(chosen), score))
    return buckets


def bounds(words: Sequence[int], most: int, at_least: int) -> list[tuple[int, int]]:
    """The shortest and the longest length of each bucket; one length is never divided."""
    wanted = max(at_least, -(-len(words) // most))
    found: list[tuple[int, int]] = []
    lengths: list[int] = []
    size = 0
    for length, count in sorted(Counter(words).items()):
        lengths.append(length)
        size += count
        if size >= wanted:
            found.append((lengths[0], length))
            lengths, size = [], 0
    if lengths and found and size < at_least:
        found[-1] = (found[-1][0], lengths[-1])  # too few to stand alone
    elif lengths:
        found.append((lengths[0], lengths[-1]))
    return found
