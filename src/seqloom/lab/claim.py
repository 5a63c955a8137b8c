"""Claim: a statement of the lectures, and the experiment that tests it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Verdict
from seqloom.viz.chart import Chart

Size = Literal["tiny", "small", "full"]
"""tiny: smoke test; small: minutes on two cores; full: for a GPU."""
SettingsT = TypeVar("SettingsT")
TrialProgress = Callable[[str, float], None]
"""Receives the current activity and the completed fraction of a trial."""


@dataclass(frozen=True)
class Trial(Generic[SettingsT]):
    """One measurement to make: one condition with one seed.

    settings: sizes of models and data
    models:   folder of trained models; see `trained_models.train_once`
    progress: receives the progress of the trial
    """

    condition: str
    seed: int
    settings: SettingsT
    models: Path
    progress: TrialProgress


@dataclass(frozen=True)
class Column:
    """A column of the results table.

    name:        name of the measured value
    label:       heading of the column
    format_spec: as in format(), for example ".1%"
    """

    name: str
    label: str
    format_spec: str = ".3g"


@dataclass(frozen=True)
class PublishedFigure:
    """A published value.

    The report compares it with the value `name` that we measure under `condition`.
    """

    label: str
    value: float
    condition: str
    name: str


@dataclass(frozen=True)
class PublishedResult:
    """Results from a publication.

    The published experiments are larger than ours, so only the ranking of the conditions is compared.

    where: publication and table
    what:  metric and experiment
    """

    where: str
    what: str
    figures: Sequence[PublishedFigure]


@dataclass(frozen=True)
class Claim(Generic[SettingsT]):
    """A claim and its experiment.

    sentence:   the claim
    source:     lectures and sections that make the claim
    setup:      description of the experiment
    confirms:   outcome that confirms the claim
    refutes:    outcome that refutes the claim
    conditions: names of the conditions to compare. Each is measured with every seed.
    sizes:      settings for each size. They are part of the cache key of a measurement.
    measure:    measures one condition with one seed
    judge:      derives the verdict from all measurements
    plot:       derives the charts from all measurements
    """

    name: str
    sentence: str
    source: str
    setup: str
    confirms: str
    refutes: str
    conditions: Sequence[str]
    sizes: Mapping[Size, SettingsT]
    measure: Callable[[Trial[SettingsT]], Numbers]
    judge: Callable[[Results], Verdict]
    plot: Callable[[Results], Sequence[Chart]]
    columns: Sequence[Column]
    published: Sequence[PublishedResult] = ()
