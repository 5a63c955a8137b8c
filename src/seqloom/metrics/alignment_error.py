"""How far alignments are from those that people made.

    precision = |A & P| / |A|     recall = |A & S| / |S|
    alignment error rate = 1 - (|A & S| + |A & P|) / (|A| + |S|)     (Och and Ney 2003)

A: what was found; S: the links that are sure; P: those that are possible, the sure ones among them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seqloom.core.errors import DataError

Link = tuple[int, int]
_GOLD = re.compile(r"([0-9]+)([-p])([0-9]+)")


@dataclass(frozen=True)
class GoldLinks:
    """The links of one pair of sentences, source before target, counted from 0.

    possible: the sure ones are among them
    """

    sure: frozenset[Link]
    possible: frozenset[Link]

    def beyond(self, source_words: int, target_words: int) -> list[Link]:
        """Links to words that these sentences do not have."""
        return sorted(
            link for link in self.possible if link[0] >= source_words or link[1] >= target_words
        )


def parse_gold(line: str) -> GoldLinks:
    """ "0-0 1p2" -> 0-0 is sure, 1-2 possible"""
    sure, possible, wrong = set(), set(), []
    for entry in line.split():
        found = _GOLD.fullmatch(entry)
        if found is None:
            wrong.append(repr(entry))
            continue
        link = int(found[1]), int(found[3])
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    if wrong:
        raise DataError(
            f"not a gold alignment: {', '.join(wrong)}; write sure links as 0-0 and possible ones "
            "as 0p0, source before target, words counted from 0"
        )
    return GoldLinks(frozenset(sure), frozenset(possible))


@dataclass(frozen=True)
class AlignmentScores:
    """Over all pairs together; each from 0 to 1.

    links: how many were found
    """

    precision: float
    recall: float
    error_rate: float
    sentences: int
    links: int


def score_alignments(found: Sequence[Iterable[Link]], gold: Sequence[GoldLinks]) -> AlignmentScores:
    """Links are counted over all pairs, then divided once."""
    assert len(found) == len(gold), "one alignment for each pair"
    links = sure = right_sure = right = 0
    for own, known in zip(map(set, found), gold, strict=True):
        links += len(own)
        sure += len(known.sure)
        right_sure += len(own & known.sure)
        right += len(own & known.possible)
    # Who says nothing says nothing wrong, and where nothing is sure nothing can be missed.
    return AlignmentScores(
        precision=right / links if links else 1.0,
        recall=right_sure / sure if sure else 1.0,
        error_rate=1 - (right_sure + right) / (links + sure) if links + sure else 0.0,
        sentences=len(gold),
        links=links,
    )
