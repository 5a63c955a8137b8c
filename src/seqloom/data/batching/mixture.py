"""Temperature sampling over the groups of a training split (Arivazhagan et al. 2019).

A group is, for example, all examples of a language pair.

In each epoch, the number of examples drawn from a group of n examples is proportional to
n^(1/temperature).

The examples of a group are drawn in random order. When all of them have been drawn, they are
shuffled again. Each epoch continues where the previous epoch stopped. So the numbers
of times that two examples of the same group have been drawn never differ by more than 1.
The examples drawn in an epoch depend only on the groups, the temperature, the seed and the epoch.

Fine-tuning can replay examples, which means that it also trains on training examples of the parent
(the run that it starts from). The replayed examples are a group of their own. The temperature does
not apply to them. The setting data.replay.share determines their share of an epoch.
"""

from dataclasses import dataclass

import numpy as np

from seqloom.data.corpus.dataset import CorpusReport, IntArray
from seqloom.data.example import REPLAY_GROUP


@dataclass(frozen=True)
class DataGroup:
    """A group of examples in a split, such as a language pair.

    ranges: the examples of the group as ranges of indices in the split. A range is (first index,
            last index + 1)
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
    """Return the groups of a split, such as its language pairs, in order of first appearance.

    A split without named groups is a single group.

    report: contains the number of examples of each group
    """
    ranges: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for name, kept in report.parts or [("", report.kept)]:
        ranges.setdefault(name, []).append((start, start + kept))
        start += kept
    return [DataGroup(name, tuple(group_ranges)) for name, group_ranges in ranges.items()]


@dataclass(frozen=True)
class GroupShare:
    """How many examples of a group, such as a language pair, are drawn in an epoch.

    examples: number of examples in the group
    drawn:    number of draws per epoch, repetitions included
    """

    name: str
    examples: int
    drawn: int


def group_shares(
    groups: list[DataGroup], temperature: float, replay_share: float | None = None
) -> list[GroupShare]:
    """Compute how many examples an epoch draws from each group.

    All groups together get as many draws as they have examples. Each group gets at least one draw,
    which can make the epoch slightly longer.

    In fine-tuning, an epoch can also contain replayed examples: training examples of the run that
    fine-tuning starts from. Their draws are added to the draws of the other groups.

    replay_share: share of the replayed examples in the whole epoch; None if nothing is replayed
    """
    if replay_share is not None:
        own = [group for group in groups if group.name != REPLAY_GROUP]
        shares = group_shares(own, temperature)
        count = sum(share.drawn for share in shares) * replay_share / (1 - replay_share)
        return [
            *shares,
            *(
                GroupShare(group.name, group.size, max(round(count), 1))
                for group in groups
                if group.name == REPLAY_GROUP
            ),
        ]
    sizes = np.array([group.size for group in groups])
    # Divide by the largest size first, so that the power cannot overflow.
    weights = (sizes / sizes.max()) ** (1 / temperature)
    exact = weights / weights.sum() * sizes.sum()
    # Rounding errors must not turn 28 into 27.999…, which would be rounded down.
    integers = np.rint(exact)
    exact = np.where(np.isclose(exact, integers, rtol=1e-12, atol=1e-12), integers, exact)
    drawn = np.maximum(np.floor(exact), 1).astype(np.int64)
    missing = int(sizes.sum() - drawn.sum())
    # Rounding down leaves some draws unassigned. Assign one of them to each of the groups with the
    # largest remainders.
    for index in np.argsort(np.floor(exact) - exact, kind="stable")[: max(missing, 0)]:
        drawn[index] += 1
    return [
        GroupShare(group.name, int(size), int(count))
        for group, size, count in zip(groups, sizes, drawn, strict=True)
    ]


def draw_epoch(
    groups: list[DataGroup],
    temperature: float,
    seed: int,
    epoch: int,
    replay_share: float | None = None,
) -> IntArray:
    """Return the indices of the examples drawn for an epoch, in ascending order. An example that is
    drawn several times is repeated."""
    draws = []
    shares = group_shares(groups, temperature, replay_share)
    for group_index, (group, share) in enumerate(zip(groups, shares, strict=True)):
        positions = np.arange(epoch * share.drawn, (epoch + 1) * share.drawn)
        cycles = np.split(positions, np.flatnonzero(positions % group.size == 0))
        for cycle in cycles:
            if len(cycle):
                generator = np.random.default_rng([seed, group_index, int(cycle[0]) // group.size])
                order = generator.permutation(group.size)
                draws.append(group.examples(order[cycle % group.size]))
    return np.sort(np.concatenate(draws))
