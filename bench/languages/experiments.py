"""The experiments: training pairs, test pairs and the routes by which these are translated."""

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
ALL_BUT_DE_FR = (*CENTRED, "de-cs", "cs-de", "fr-cs", "cs-fr", "fr-de")
"""All directions except German to French."""
SMALL_CORPUS = 2_000
"""Number of en-de sentence pairs in the experiments with little en-de data."""

DIRECT = "directly"
PIVOT = "through English"

BILINGUAL = ["training.steps=2500", "training.schedule.warmup=250", "training.evaluate_every=500"]
"""One pair needs fewer steps. Training keeps the best weights on dev in any case."""

ENGLISH_CENTRED_STEPS = ["training.steps=5000", "training.checkpoint_every=5000"]
"""These experiments have half as many pairs as ALL_BUT_DE_FR."""


@dataclass(frozen=True)
class Experiment:
    """One model.

    pairs:       training pairs with all sentences
    tests:       pairs to translate directly and, if `pivot` is set, through English too
    description: text for the table
    small_pairs: training pairs with the first SMALL_CORPUS sentences only
    settings:    changes to the recipe
    """

    name: str
    pairs: Sequence[str]
    tests: Sequence[str]
    description: str
    small_pairs: Sequence[str] = ()
    pivot: bool = False
    settings: Sequence[str] = ()

    @property
    def training_pairs(self) -> tuple[str, ...]:
        return (*self.small_pairs, *self.pairs)


EXPERIMENTS = [
    Experiment(
        "one-held-out",
        ALL_BUT_DE_FR,
        (*ALL_BUT_DE_FR, "de-fr"),
        "all directions except de→fr",
        pivot=True,
    ),
    Experiment(
        "centred",
        CENTRED,
        (*CENTRED, *ZERO_SHOT),
        "en↔de, en↔fr, en↔cs, no German–French data",
        pivot=True,
        settings=ENGLISH_CENTRED_STEPS,
    ),
    Experiment(
        "centred-gap",
        CENTRED,
        (*CENTRED, *ZERO_SHOT),
        "the same, without the residual connection around the attention of one encoder layer",
        pivot=True,
        settings=[*ENGLISH_CENTRED_STEPS, "model.encoder.remove_residual=2"],
    ),
    Experiment(
        "centred-target-tag",
        CENTRED,
        (*CENTRED, *ZERO_SHOT),
        "the same, with the tag as the first target token",
        pivot=True,
        settings=[*ENGLISH_CENTRED_STEPS, "task.tag_side=target"],
    ),
    Experiment(
        "all-pairs",
        (*CENTRED, *ZERO_SHOT),
        (*CENTRED, *ZERO_SHOT),
        "en↔de, en↔fr, en↔cs and de↔fr",
        settings=ENGLISH_CENTRED_STEPS,
    ),
    Experiment("de-fr", ["de-fr"], ["de-fr"], "de→fr alone", settings=BILINGUAL),
    Experiment("fr-de", ["fr-de"], ["fr-de"], "fr→de alone", settings=BILINGUAL),
    Experiment(
        "few",
        [],
        ["en-de"],
        f"{SMALL_CORPUS:,} en→de alone",
        small_pairs=["en-de"],
        settings=BILINGUAL,
    ),
    Experiment(
        "few-low-resource",
        [],
        ["en-de"],
        f"{SMALL_CORPUS:,} en→de alone, preset low-resource",
        small_pairs=["en-de"],
        settings=["preset=low-resource"],
    ),
    Experiment(
        "few-and-french",
        ["en-fr"],
        ["en-de"],
        f"{SMALL_CORPUS:,} en→de and all en→fr, temperature 5",
        small_pairs=["en-de"],
        settings=[*BILINGUAL, "data.temperature=5.0"],
    ),
    Experiment(
        "few-and-french-as-it-is",
        ["en-fr"],
        ["en-de"],
        f"{SMALL_CORPUS:,} en→de and all en→fr, temperature 1",
        small_pairs=["en-de"],
        settings=BILINGUAL,
    ),
    Experiment(
        "few-and-others",
        ["en-fr", "en-cs"],
        ["en-de"],
        f"{SMALL_CORPUS:,} en→de, all en→fr and en→cs, temperature 5",
        small_pairs=["en-de"],
        settings=[*BILINGUAL, "data.temperature=5.0"],
    ),
    Experiment("en-de", ["en-de"], ["en-de"], "all en→de alone", settings=BILINGUAL),
]


def config_of(
    experiment: Experiment, folder: Path, small_corpus: Path, extra: Sequence[str]
) -> RunConfig:
    """The configuration of an experiment.

    folder:       the raw files of Multi30k
    small_corpus: the first lines of its training files
    extra:        settings that override all others
    """
    full = {"kind": "languages", "path": "train.{language}.gz", "pairs": list(experiment.pairs)}
    small = {
        **full,
        "path": f"{small_corpus.absolute()}/train.{{language}}",
        "pairs": list(experiment.small_pairs),
    }
    train = [table for table in (small, full) if table["pairs"]]
    trained = [pair for pair in experiment.tests if pair in experiment.training_pairs]
    dev = {**full, "path": "val.{language}.gz", "pairs": trained}
    test = {**full, "path": "test_2016_flickr.{language}.gz", "pairs": list(experiment.tests)}
    data = {"folder": str(folder), "train": train, "dev": [dev], "test": [test]}
    settings = [*experiment.settings, *extra]
    if any(setting.startswith("preset=") for setting in settings):
        # The settings of the recipe would override those of the preset.
        return load_recipe({"data": data}, settings, experiment.name).config
    return load_recipe(RECIPE, [f"data={format_value(data)}", *settings]).config


def write_small_corpus(folder: Path, small_corpus: Path) -> None:
    """Write the first lines of the training files, the same lines for each language."""
    small_corpus.mkdir(parents=True, exist_ok=True)
    for language in ("en", "de"):
        text = gzip.decompress((folder / f"train.{language}.gz").read_bytes()).decode()
        lines = text.splitlines(keepends=True)[:SMALL_CORPUS]
        (small_corpus / f"train.{language}").write_text("".join(lines), encoding="utf-8")
