"""Where the candidates of a recorded search stand in a picture: steps to the right.

Everything that was kept or saved is drawn, and of what was dropped the best few of each step; how
many more there were is said under the step.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.decoding.record import ROOT, Candidate, Fate, Place
from seqloom.runs.question import Searched

LONGEST = 16
"""Characters of a label."""
DROPPED = 3
"""Dropped candidates that are drawn at each step."""


@dataclass(frozen=True)
class Spot:
    """One candidate in the picture.

    row:   downwards, in heights of a label; the root is at 0
    wins:  is it part of the best output?
    rank:  which output ends here, 1 is the best; 0: none
    """

    place: Place
    label: str
    row: float
    candidate: Candidate
    wins: bool
    rank: int


@dataclass(frozen=True)
class Layout:
    """spots: of each step, downwards; left_out: of each step, how many were dropped for what."""

    spots: tuple[tuple[Spot, ...], ...]
    left_out: tuple[Counter[str], ...]

    @property
    def top(self) -> float:
        return min((spot.row for step in self.spots for spot in step), default=0.0)

    @property
    def bottom(self) -> float:
        return max((spot.row for step in self.spots for spot in step), default=0.0)

    def parent(self, spot: Spot) -> Spot | None:
        """None: it is the first token."""
        step, index = spot.place[0] - 1, spot.candidate.parent
        if index == ROOT:
            return None
        return next(one for one in self.spots[step] if one.place == (step, index))


def lay_out(searched: Searched, dropped: int = DROPPED) -> Layout:
    """Children stand beside their parent, in its order, and no two labels on each other."""
    record = searched.record
    paths = record.best()
    winning = set(paths[0]) if paths else set()
    ranks = {path[-1]: rank for rank, path in enumerate(paths, start=1)}
    rows: dict[Place, float] = {}
    steps, left_out = [], []
    for number, step in enumerate(record.steps):
        shown = drawn(step, dropped)
        left_out.append(_left_out(step, shown))

        def parent_row(place: int, number: int = number) -> float:
            parent = record.steps[number][place].parent
            return 0.0 if parent == ROOT else rows[number - 1, parent]

        shown.sort(key=lambda place: (parent_row(place), -step[place].total))
        before = Counter[float]()
        wanted = []
        for place in shown:  # the best child beside its parent, the others below it
            row = parent_row(place)
            wanted.append(row + before[row])
            before[row] += 1
        placed = spread(wanted)
        rows.update(((number, place), row) for place, row in zip(shown, placed, strict=True))
        steps.append(
            tuple(
                Spot(
                    place=(number, place),
                    label=short(searched.pieces[step[place].token]),
                    row=rows[number, place],
                    candidate=step[place],
                    wins=(number, place) in winning,
                    rank=ranks.get((number, place), 0),
                )
                for place in shown
            )
        )
    return Layout(tuple(steps), tuple(left_out))


def drawn(step: Sequence[Candidate], dropped: int) -> list[int]:
    """The places of all that live on or are saved, and of the best that are dropped."""
    living = [place for place, one in enumerate(step) if one.fate is not Fate.DROPPED]
    lost = [place for place, one in enumerate(step) if one.fate is Fate.DROPPED]
    lost.sort(key=lambda place: -step[place].total)
    return living + lost[:dropped]


def _left_out(step: Sequence[Candidate], shown: Sequence[int]) -> Counter[str]:
    hidden = set(range(len(step))) - set(shown)
    return Counter(str(step[place].reason) for place in sorted(hidden))


def spread(wanted: Sequence[float], gap: float = 1.0) -> list[float]:
    """Rows as near to the wanted ones as can be in this order, each a gap below the one before.

    Groups that would overlap are merged and share the mean of what their members want.
    """
    groups: list[tuple[float, int]] = []  # where a group begins on average, and its size
    for place, row in enumerate(wanted):
        start, size = row - gap * place, 1
        while groups and groups[-1][0] >= start:
            above, count = groups.pop()
            start, size = (above * count + start * size) / (count + size), count + size
        groups.append((start, size))
    starts = [start for start, size in groups for _ in range(size)]
    return [start + gap * place for place, start in enumerate(starts)]


def short(piece: str) -> str:
    """A piece without the mark of a word's beginning, and not too long."""
    shown = piece.removeprefix("▁") or piece
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def share(log_probability: float) -> str:
    """A probability in three characters: .07, or 1.0 where nothing else was likely."""
    value = math.exp(log_probability)
    if value < 0.005:
        return "<.01"
    return f"{value:.2f}".removeprefix("0") if value < 0.995 else "1.0"


def tree_title(searched: Searched) -> str:
    record = searched.record
    words = {"beam": f"beam of {record.width}", "sample": f"{record.width} samples"}
    how = words.get(record.kind, f"{record.kind} search")
    return f"{searched.text}  ·  {how}" if searched.text.strip() else how
