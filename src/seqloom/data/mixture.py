"""How often the parts of a training split are seen: by their size, or more evenly.

A part of n examples is drawn in proportion to n^(1/temperature) (Arivazhagan et al. 2019). Every
part is a sequence without end, one shuffle of all its examples after the other, and an epoch
takes the next stretch of each. So no example of a part is ever two draws ahead of another, and
what an epoch draws is a pure function of (seed, epoch).
"""

from dataclasses import dataclass

import numpy as np

from seqloom.data.batching import Sizes
from seqloom.data.examples import CorpusReport


@dataclass(frozen=True)
class Part:
    """A pair of languages, or another part of a split.

    stretches: (first example, one behind the last) of each corpus that it is read from
    """

    name: str
    stretches: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        return sum(stop - start for start, stop in self.stretches)

    def examples(self, places: Sizes) -> Sizes:
        """The examples at these places of the part, in the whole split."""
        starts, stops = np.array(self.stretches).T
        ends = np.cumsum(stops - starts)
        which = np.searchsorted(ends, places, side="right")
        return places + (stops - ends)[which]


def parts_of(report: CorpusReport) -> list[Part]:
    """The pairs of languages, or other parts, in the order of first appearance."""
    stretches: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for name, kept in report.parts or [("", report.kept)]:
        stretches.setdefault(name, []).append((start, start + kept))
        start += kept
    return [Part(name, tuple(places)) for name, places in stretches.items()]


@dataclass(frozen=True)
class Share:
    """What a part makes up of the training.

    examples: there are
    drawn:    in an epoch, repetitions counted
    """

    name: str
    examples: int
    drawn: int


def shares_of(parts: list[Part], temperature: float) -> list[Share]:
    """An epoch draws as many examples as there are, and one at least of each part."""
    sizes = np.array([part.size for part in parts])
    # Divided by the largest first: no power of it can overflow.
    weights = (sizes / sizes.max()) ** (1 / temperature)
    exact = weights / weights.sum() * sizes.sum()
    drawn = np.maximum(np.floor(exact), 1).astype(np.int64)
    missing = int(sizes.sum() - drawn.sum())
    # What rounding down has left over goes to the parts that lost most by it.
    for place in np.argsort(np.floor(exact) - exact, kind="stable")[: max(missing, 0)]:
        drawn[place] += 1
    return [
        Share(part.name, int(size), int(count))
        for part, size, count in zip(parts, sizes, drawn, strict=True)
    ]


def draw_epoch(parts: list[Part], temperature: float, seed: int, epoch: int) -> Sizes:
    """The examples of an epoch, in ascending order; repeated ones stand side by side."""
    drawn = []
    for number, (part, share) in enumerate(zip(parts, shares_of(parts, temperature), strict=True)):
        places = np.arange(epoch * share.drawn, (epoch + 1) * share.drawn)
        cycles = np.split(places, np.flatnonzero(places % part.size == 0))
        for cycle in cycles:
            if len(cycle):
                shuffle = np.random.default_rng([seed, number, int(cycle[0]) // part.size])
                order = shuffle.permutation(part.size)
                drawn.append(part.examples(order[cycle % part.size]))
    return np.sort(np.concatenate(drawn))
