"""Scores by source length, which show whether a model fails on long sources."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.core.errors import DataError
from seqloom.metrics.score import Metric, References, Score, check_references


@dataclass(frozen=True)
class LengthBucket:
    """The score of the sentences whose source has `shortest` to `longest` words, both included.

    sentences: number of these sentences
    """

    shortest: int
    longest: int
    sentences: int
    score: Score


def by_length(
    metric: Metric,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: References,
    max_buckets: int = 5,
    min_sentences: int = 50,
) -> list[LengthBucket]:
    """Divide the sentences into buckets by source length, and score each bucket with the metric.

    The length is the number of words separated by white space. There are at most `max_buckets`
    buckets. They have similar numbers of sentences, and each has at least `min_sentences`. If the
    whole corpus has fewer than `min_sentences` sentences, it is one bucket.
    """
    check_references(hypotheses, references)
    if len(sources) != len(hypotheses):
        raise DataError(
            f"the outputs cannot be scored: there are {len(sources):,} sources and "
            f"{len(hypotheses):,} hypotheses; give one hypothesis for each source"
        )
    lengths = [len(source.split()) for source in sources]
    buckets = []
    for shortest, longest in bucket_bounds(lengths, max_buckets, min_sentences):
        members = [i for i, length in enumerate(lengths) if shortest <= length <= longest]
        score = metric([hypotheses[i] for i in members], [references[i] for i in members])
        buckets.append(LengthBucket(shortest, longest, len(members), score))
    return buckets


def bucket_bounds(
    lengths: Sequence[int], max_buckets: int, min_sentences: int
) -> list[tuple[int, int]]:
    """Return the smallest and the largest length in each bucket.

    All sentences of the same length are in the same bucket.
    """
    target_size = max(min_sentences, -(-len(lengths) // max_buckets))
    bounds: list[tuple[int, int]] = []
    bucket: list[int] = []
    size = 0
    for length, count in sorted(Counter(lengths).items()):
        bucket.append(length)
        size += count
        if size >= target_size:
            bounds.append((bucket[0], length))
            bucket, size = [], 0
    if bucket and bounds and size < min_sentences:
        bounds[-1] = (bounds[-1][0], bucket[-1])  # too few sentences for a bucket of their own
    elif bucket:
        bounds.append((bucket[0], bucket[-1]))
    return bounds
