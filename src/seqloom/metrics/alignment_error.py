"""Scores alignments against gold alignments, which human annotators have made.

    precision = |A & P| / |A|     recall = |A & S| / |S|
    alignment error rate = 1 - (|A & S| + |A & P|) / (|A| + |S|)     (Och and Ney 2003)

A: predicted links; S: sure links; P: possible links, which include the sure ones.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seqloom.core.errors import DataError
from seqloom.metrics.alignment import Link

_GOLD_LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")


@dataclass(frozen=True)
class GoldLinks:
    """The gold links of one sentence pair. The possible links include the sure links."""

    sure: frozenset[Link]
    possible: frozenset[Link]

    def beyond(self, source_words: int, target_words: int) -> list[Link]:
        """Return the links with a word index that is too large for sentences of these lengths."""
        return sorted(
            link for link in self.possible if link[0] >= source_words or link[1] >= target_words
        )


def parse_gold(line: str) -> GoldLinks:
    """Read the gold links of a line: "0-0 1p2" has the sure link 0-0 and the possible link 1-2."""
    sure, possible, invalid = set(), set(), []
    for entry in line.split():
        match = _GOLD_LINK.fullmatch(entry)
        if match is None:
            invalid.append(repr(entry))
            continue
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    if invalid:
        raise DataError(
            f"not a gold alignment: {', '.join(invalid)}; write sure links as 0-0 and possible "
            "links as 0p0, source before target, with words counted from 0"
        )
    return GoldLinks(frozenset(sure), frozenset(possible))


@dataclass(frozen=True)
class AlignmentScores:
    """Precision, recall and alignment error rate over all sentence pairs, each from 0 to 1.

    sentences: number of sentence pairs
    links:     number of predicted links
    """

    precision: float
    recall: float
    error_rate: float
    sentences: int
    links: int


def score_alignments(
    alignments: Sequence[Iterable[Link]], gold: Sequence[GoldLinks]
) -> AlignmentScores:
    """Compute precision, recall and alignment error rate of predicted alignments.

    Links are counted over all sentence pairs, and the scores are computed from these sums. They are
    not means of the scores of single sentence pairs.
    """
    assert len(alignments) == len(gold), "one alignment for each sentence pair"
    links = sure = correct_sure = correct = 0
    for predicted, expected in zip(map(set, alignments), gold, strict=True):
        links += len(predicted)
        sure += len(expected.sure)
        correct_sure += len(predicted & expected.sure)
        correct += len(predicted & expected.possible)
    # If there are no predicted links, precision is 1. If there are no sure links, recall is 1.
    return AlignmentScores(
        precision=correct / links if links else 1.0,
        recall=correct_sure / sure if sure else 1.0,
        error_rate=1 - (correct_sure + correct) / (links + sure) if links + sure else 0.0,
        sentences=len(gold),
        links=links,
    )
