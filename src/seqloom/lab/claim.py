"""A claim: a sentence of the lectures, and the experiment that decides about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Verdict
from seqloom.viz.chart import Chart

Size = Literal["tiny", "small", "full"]
"""tiny: only to see that it runs; small: minutes on two cores; full: for a GPU."""
Settings = TypeVar("Settings")
Tell = Callable[[str, float], None]
"""What is being done now, and which share of this trial is done."""


@dataclass(frozen=True)
class Trial(Generic[Settings]):
    """One condition with one seed, about to be measured.

    settings: how large everything is
    models:   where trained models are kept; see `experiment.trained`
    """

    condition: str
    seed: int
    settings: Settings
    models: Path
    tell: Tell


@dataclass(frozen=True)
class Column:
    """A column of the table: one of the numbers, and how people read it."""

    name: str
    label: str
    form: str = ".3g"
    """As in format(): ".1%" for shares."""


@dataclass(frozen=True)
class Figure:
    """A published number, and which of ours stands beside it."""

    label: str
    value: float
    condition: str
    name: str


@dataclass(frozen=True)
class Published:
    """Numbers that others found with more: their order is compared with ours, not their size."""

    where: str
    what: str
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Claim(Generic[Settings]):
    """What is claimed, how it is tried, and what would decide it.

    sentence:   the claim in our words
    source:     documents and sections it comes from
    setup:      what is done, in words
    confirms, refutes: what would have to come out
    conditions: what is compared; each is measured by itself, with every seed
    sizes:      the settings of each size; they decide what is measured, so they are part of its key
    """

    name: str
    sentence: str
    source: str
    setup: str
    confirms: str
    refutes: str
    conditions: Sequence[str]
    sizes: Mapping[Size, Settings]
    measure: Callable[[Trial[Settings]], Numbers]
    judge: Callable[[Results], Verdict]
    plot: Callable[[Results], Sequence[Chart]]
    columns: Sequence[Column]
    published: Sequence[Published] = ()
