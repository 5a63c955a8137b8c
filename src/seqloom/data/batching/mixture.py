"""Temperature sampling over the groups of a training split (Arivazhagan et al. 2019).

An epoch draws from a group of n examples in proportion to n^(1/temperature). Each group is an
endless sequence of shuffles of its examples, and an epoch takes the next section of it. So the
draw counts of two examples of a group never differ by more than one, and the draws of an epoch
are a pure function of (seed, epoch).
"""

from dataclasses import dataclass

import numpy as np

from seqloom.data.corpus.dataset import CorpusReport, IntArray


@dataclass(frozen=True)
class DataGroup:
    """A language pair or another group of a split.

    ranges: (first index, last index + 1) in the split, for each corpus of the group
    """

    name: str
    ranges: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        return sum(stop - start for start, stop in self.ranges)

    def examples(self, indices: IntArray) -> IntArray:
        """Convert indices within the group to indices within the split."""
        starts, stops = np.array(self.ranges).T
        ends = np.cumsum(stops - starts)
        which = np.searchsorted(ends, indices, side="right")
        return indices + (stops - ends)[which]


def groups_of(report: CorpusReport) -> list[DataGroup]:
    """Return the groups of a split, in order of first appearance."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for name, kept in report.parts or [("", report.kept)]:
        ranges.setdefault(name, []).append((start, start + kept))
        start += kept
    return [DataGroup(name, tuple(group_ranges)) for name, group_ranges in ranges.items()]


@dataclass(frozen=True)
class GroupShare:
    """A group's share of an epoch.

    examples: number of examples in the group
    drawn:    number of draws per epoch, repetitions included
    """

    name: str
    examples: int
    drawn: int


def group_shares(groups: list[DataGroup], temperature: float) -> list[GroupShare]:
    """Divide an epoch among the groups. It has as many draws as there are examples, and at least
    one per group."""
    sizes = np.array([group.size for group in groups])
    # Dividing by the largest size first keeps the power from overflowing.
    weights = (sizes / sizes.max()) ** (1 / temperature)
    exact = weights / weights.sum() * sizes.sum()
    drawn = np.maximum(np.floor(exact), 1).astype(np.int64)
    missing = int(sizes.sum() - drawn.sum())
    # The draws lost by rounding down go to the groups that lost most.
    for index in np.argsort(np.floor(exact) - exact, kind="stable")[: max(missing, 0)]:
        drawn[index] += 1
    return [
        GroupShare(group.name, int(size), int(count))
        for group, size, count in zip(groups, sizes, drawn, strict=True)
    ]


def draw_epoch(groups: list[DataGroup], temperature: float, seed: int, epoch: int) -> IntArray:
    """Return the indices drawn for an epoch, in ascending order, with repetitions."""
    draws = []
    shares = group_shares(groups, temperature)
    for number, (group, share) in enumerate(zip(groups, shares, strict=True)):
        positions = np.arange(epoch * share.drawn, (epoch + 1) * share.drawn)
        cycles = np.split(positions, np.flatnonzero(positions % group.size == 0))
        for cycle in cycles:
            if len(cycle):
                generator = np.random.default_rng([seed, number, int(cycle[0]) // group.size])
                order = generator.permutation(group.size)
                draws.append(group.examples(order[cycle % group.size]))
    return np.sort(np.concatenate(draws))
