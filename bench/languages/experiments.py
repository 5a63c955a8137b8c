"""What is trained, on which pairs, and in which ways each test pair is then translated."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_value
from seqloom.config.schema.recipe import RunConfig

RECIPE = "multi30k-languages"
CENTRED = ("en-de", "de-en", "en-fr", "fr-en", "en-cs", "cs-en")
ZERO_SHOT = ("de-fr", "fr-de")
ALL_BUT_ONE = (*CENTRED, "de-cs", "cs-de", "fr-cs", "cs-fr", "fr-de")
"""All directions but German to French."""
SMALL = 2_000
"""Pairs of en-de where en-de is small."""

DIRECT = "directly"
THROUGH = "through English"

BILINGUAL = ["training.steps=2500", "training.schedule.warmup=250", "training.evaluate_every=500"]
"""One pair needs fewer steps; the best weights on dev are kept in any case."""

CENTRED_STEPS = ["training.steps=5000", "training.checkpoint_every=5000"]
"""Half as many pairs as all directions but one."""


@dataclass(frozen=True)
class Experiment:
    """One model.

    pairs: trained on, all sentences; few: trained on, the first SMALL sentences only
    tests: the pairs that are translated, directly and, if `pivot`, through English too
    words: what it is, for the table
    """

    name: str
    pairs: Sequence[str]
    tests: Sequence[str]
    words: str
    few: Sequence[str] = ()
    pivot: bool = False
    settings: Sequence[str] = ()

    @property
    def trained(self) -> tuple[str, ...]:
        return (*self.few, *self.pairs)


EXPERIMENTS = [
    Experiment(
        "one-held-out",
        ALL_BUT_ONE,
        (*ALL_BUT_ONE, "de-fr"),
        "all directions but de→fr",
        pivot=True,
    ),
    Experiment(
        "centred",
        CENTRED,
        (*CENTRED, *ZERO_SHOT),
        "en↔de, en↔fr, en↔cs: German and French never meet",
        pivot=True,
        settings=CENTRED_STEPS,
    ),
    Experiment(
        "centred-gap",
        CENTRED,
        (*CENTRED, *ZERO_SHOT),
        "the same, an encoder layer without a way around its attention",
        pivot=True,
        settings=[*CENTRED_STEPS, "model.encoder.residual_gap=2"],
    ),
    Experiment(
        "centred-target-tag",
        CENTRED,
        (*CENTRED, *ZERO_SHOT),
        "the same, the tag as the first target token",
        pivot=True,
        settings=[*CENTRED_STEPS, "task.tag_side=target"],
    ),
    Experiment(
        "all-pairs",
        (*CENTRED, *ZERO_SHOT),
        (*CENTRED, *ZERO_SHOT),
        "en↔de, en↔fr, en↔cs and de↔fr",
        settings=CENTRED_STEPS,
    ),
    Experiment("de-fr", ["de-fr"], ["de-fr"], "de→fr alone", settings=BILINGUAL),
    Experiment("fr-de", ["fr-de"], ["fr-de"], "fr→de alone", settings=BILINGUAL),
    Experiment("few", [], ["en-de"], f"{SMALL:,} en→de alone", few=["en-de"], settings=BILINGUAL),
    Experiment(
        "few-low-resource",
        [],
        ["en-de"],
        f"{SMALL:,} en→de alone, preset low-resource",
        few=["en-de"],
        settings=["preset=low-resource"],
    ),
    Experiment(
        "few-and-french",
        ["en-fr"],
        ["en-de"],
        f"{SMALL:,} en→de and all en→fr, temperature 5",
        few=["en-de"],
        settings=[*BILINGUAL, "data.temperature=5.0"],
    ),
    Experiment(
        "few-and-french-as-it-is",
        ["en-fr"],
        ["en-de"],
        f"{SMALL:,} en→de and all en→fr, as the data is",
        few=["en-de"],
        settings=BILINGUAL,
    ),
    Experiment(
        "few-and-others",
        ["en-fr", "en-cs"],
        ["en-de"],
        f"{SMALL:,} en→de, all en→fr and en→cs, temperature 5",
        few=["en-de"],
        settings=[*BILINGUAL, "data.temperature=5.0"],
    ),
    Experiment("en-de", ["en-de"], ["en-de"], "all en→de alone", settings=BILINGUAL),
]


def config_of(experiment: Experiment, folder: Path, few: Path, extra: Sequence[str]) -> RunConfig:
    """The whole recipe; `few` holds the first lines of the training files, `extra` has the last
    word."""
    whole = {"kind": "languages", "path": "train.{language}.gz", "pairs": list(experiment.pairs)}
    some = {**whole, "path": f"{few.absolute()}/train.{{language}}", "pairs": list(experiment.few)}
    train = [table for table in (some, whole) if table["pairs"]]
    seen = [pair for pair in experiment.tests if pair in experiment.trained]
    dev = {**whole, "path": "val.{language}.gz", "pairs": seen}
    test = {**whole, "path": "test_2016_flickr.{language}.gz", "pairs": list(experiment.tests)}
    data = {"folder": str(folder), "train": train, "dev": [dev], "test": [test]}
    settings = [*experiment.settings, *extra]
    if any(one.startswith("preset=") for one in settings):
        # The recipe's own words would be laid over the preset, which is to come as it is.
        return load_recipe({"data": data}, settings, experiment.name).config
    return load_recipe(RECIPE, [f"data={format_value(data)}", *settings]).config


def write_few(folder: Path, few: Path) -> None:
    """The first lines of the training files; the same ones in every language."""
    few.mkdir(parents=True, exist_ok=True)
    for language in ("en", "de"):
        text = gzip.decompress((folder / f"train.{language}.gz").read_bytes()).decode()
        lines = text.splitlines(keepends=True)[:SMALL]
        (few / f"train.{language}").write_text("".join(lines), encoding="utf-8")
