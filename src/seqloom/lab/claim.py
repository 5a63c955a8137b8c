"""Claim: a statement from lectures on sequence models, and the experiment that tests it."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import MIN_SEEDS, Verdict
from seqloom.viz.chart import Chart

Size = Literal["tiny", "small", "full"]
"""tiny: smoke test; small: minutes on two cores; full: for a GPU."""
TEXTS = ("sentence", "source", "setup", "confirms", "refutes")
OPPOSITE = "The opposite of one of these statements holds with every seed."
_DECLARATIONS = Path(__file__).parent / "claims" / "claims.toml"
SettingsT = TypeVar("SettingsT")
TrialProgress = Callable[[str, float], None]
"""Receives the current activity and the completed fraction of a trial."""


@dataclass(frozen=True)
class Trial(Generic[SettingsT]):
    """One measurement to make.

    condition: name of the condition, one of the variants that a claim compares
    seed:      seed of all random numbers in the measurement
    settings:  sizes of models and data
    models:    folder that stores trained models, so that each model is trained only once
    progress:  receives the progress of the trial
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

    label:     name of the value
    value:     the value
    condition: the condition of our experiment that corresponds to it
    """

    label: str
    value: float
    condition: str


@dataclass(frozen=True)
class PublishedResult:
    """Results from a publication.

    The published experiments are larger than ours. The report therefore compares only the ranking
    of the conditions, not the values.

    where:  publication and table
    what:   experiment
    metric: name of the published metric. If our experiment does not measure a value with this name,
            the report makes no comparison.
    """

    where: str
    what: str
    metric: str
    figures: Sequence[PublishedFigure]


@dataclass(frozen=True)
class Claim(Generic[SettingsT]):
    """A claim and its experiment.

    sentence:   the claim
    source:     lectures (L0 to L4, five documents) and sections that make the claim
    setup:      description of the experiment
    confirms:   outcome that confirms the claim
    refutes:    outcome that refutes the claim
    conditions: names of the variants that the experiment compares. Each of them is measured with
                every seed.
    sizes:      settings for each size of the experiment ("tiny", "small", "full"). They are part of
                the cache key of a measurement.
    measure:    measures one condition with one seed
    judge:      derives the verdict from all measurements
    plot:       derives the charts from all measurements
    min_seeds:  number of seeds that a verdict needs. Default: 3.
    is_timed:   True if the claim measures time. Its measurements run alone, after all others, and
                are not reused on another machine. Default: False.
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
    min_seeds: int = MIN_SEEDS
    is_timed: bool = False


def declare_claim(
    name: str,
    *,
    conditions: Sequence[str],
    sizes: type[SettingsT] | Mapping[Size, SettingsT],
    measure: Callable[[Trial[SettingsT]], Numbers],
    judge: Callable[[Results], Verdict],
    plot: Callable[[Results], Sequence[Chart]],
    columns: Sequence[Column] = (),
    **options: Any,
) -> Claim[SettingsT]:
    """Return a claim with its texts, and its published results, from claims/claims.toml.

    sizes:   settings of each size, or the class of the settings that claims.toml declares
    columns: default: those that claims.toml declares
    options: other fields of `Claim`
    """
    declared = _declarations()[name]
    return Claim(
        name=name,
        **{"refutes": OPPOSITE, **{key: declared[key] for key in TEXTS if key in declared}},
        conditions=conditions,
        sizes=_read_sizes(sizes, declared["sizes"]) if isinstance(sizes, type) else sizes,
        measure=measure,
        judge=judge,
        plot=plot,
        columns=columns or [Column(*each) for each in declared["columns"]],
        published=[
            PublishedResult(**{**each, "figures": [PublishedFigure(*it) for it in each["figures"]]})
            for each in declared.get("published", ())
        ],
        **options,
    )


def _read_sizes(settings: type[SettingsT], declared: Mapping[Size, Any]) -> dict[Size, SettingsT]:
    return {
        size: settings(
            **{
                key: tuple(value) if isinstance(value, list) else value
                for key, value in values.items()
            }
        )
        for size, values in declared.items()
    }


@cache
def _declarations() -> dict[str, Any]:
    return tomllib.loads(_DECLARATIONS.read_text(encoding="utf-8"))
