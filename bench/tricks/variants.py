"""The base recipe, its variants with one technique added or removed, and the data sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig

BASE = "base"
ALL = "all together"
SIDES = ("encoder", "decoder")


def both_sides(setting: str) -> list[str]:
    """The same setting for encoder and decoder."""
    return [f"model.{side}.{setting}" for side in SIDES]


BASE_SETTINGS = [
    *both_sides("dropout=0.3"),
    "training.averaging={kind='none'}",
    "training.steps=3500",
    "training.batch_tokens=4096",
    "training.optimizer.learning_rate=2e-3",
    "training.schedule.warmup=350",
    "training.evaluate_every=1750",
    "training.checkpoint_every=3500",
]
"""Changes to the preset `small`: a plain Transformer without any of the techniques below."""


@dataclass(frozen=True)
class Variant:
    """The base with a technique added, removed or replaced.

    name:     identifies the variant on the command line and in result files
    settings: changes to the base
    source:   publication of the technique, or a description
    title:    name in the tables. Default: `name`
    """

    name: str
    settings: Sequence[str]
    source: str
    title: str = ""

    @property
    def label(self) -> str:
        return self.title or self.name


VARIANTS = [
    Variant(
        BASE,
        [],
        "4+4 layers of 256, 8,000 joint pieces, tied embeddings, dropout 0.3, cosine schedule",
    ),
    Variant("+ R-Drop, α = 5", ["training.r_drop=5.0"], "Liang et al. 2021"),
    Variant("+ R-Drop, α = 2", ["training.r_drop=2.0"], "Liang et al. 2021"),
    Variant(
        "+ moving average of the weights",
        ["training.averaging={kind='ema', decay=0.998}"],
        "Polyak and Juditsky 1992",
        "+ exponential moving average of the weights",
    ),
    Variant(
        "+ mean of the last 5 weights",
        ["training.averaging={kind='last', count=5}", "training.evaluate_every=350"],
        "Vaswani et al. 2017",
        "+ mean of the weights of the last 5 evaluations",
    ),
    Variant("+ BPE dropout 0.1", ["text.sampling={alpha=0.1}"], "Provilkov et al. 2020"),
    Variant(
        "+ word dropout 0.1", both_sides("embedding.word_dropout=0.1"), "Sennrich and Zhang 2019"
    ),
    Variant("+ noise on embeddings 0.1", both_sides("embedding.noise=0.1"), "the lectures"),
    Variant(
        "+ dropout inside attention and feed-forward 0.1",
        [*both_sides("attention.dropout=0.1"), *both_sides("feedforward_dropout=0.1")],
        "Vaswani et al. 2017",
    ),
    Variant(
        "+ minimum risk in the last tenth",
        ["training.minimum_risk={after=3150, samples=5}", "training.stopping.score=bleu"],
        "Shen et al. 2016",
        "+ minimum risk training in the last tenth",
    ),
    Variant(
        "deep encoder, shallow decoder (6+2)",
        ["model.encoder.layers=6", "model.decoder.layers=2"],
        "Kasai et al. 2021",
    ),
    Variant("4,000 pieces", ["text.tokenizer.size=4000"], "Sennrich and Zhang 2019"),
    Variant("norms last", both_sides("norm=post"), "Vaswani et al. 2017", "post-norm layers"),
    Variant("rotary positions", both_sides("positions={kind='rotary'}"), "Su et al. 2021"),
    Variant("- label smoothing", ["training.label_smoothing=0.0"], "Szegedy et al. 2016"),
    Variant(
        "- dropout 0.3, but 0.1",
        both_sides("dropout=0.1"),
        "Srivastava et al. 2014",
        "dropout 0.1 instead of 0.3",
    ),
    Variant(
        "- one matrix for all embeddings",
        ["model.tie=none"],
        "Press and Wolf 2017",
        "- tied embeddings",
    ),
    Variant(
        "- cosine, but 1/√step",
        ["training.schedule={kind='inverse-square-root', warmup=350}"],
        "Loshchilov and Hutter 2017",
        "1/√step schedule instead of cosine",
    ),
    Variant(
        ALL,
        [
            "training.r_drop=5.0",
            "training.averaging={kind='ema', decay=0.998}",
        ],
        "R-Drop and a moving average of the weights",
        "all combined",
    ),
]
PRESETS = [
    Variant(f"preset {name}", [f"preset={name}"], "unchanged")
    for name in ("tiny", "small", "low-resource")
]
LOWERCASED = Variant("lower-cased text", ["text.lowercase=true"], "as in published figures")

DECODINGS: dict[str, list[str]] = {
    "greedy": ["decoding={kind='greedy'}"],
    "beam 5": [],
    "beam 10": ["decoding.width=10"],
    "beam 5, sums not divided by length": ["decoding.length_penalty=0.0"],
    "beam 5, divided by length^0.6": ["decoding.length_penalty=0.6"],
    "beam 5, divided by length^1.4": ["decoding.length_penalty=1.4"],
    "minimum Bayes risk, 32 samples": ["decoding={kind='minimum-bayes-risk', samples=32}"],
    "minimum Bayes risk, 32 samples and a beam of 5": [
        "decoding={kind='minimum-bayes-risk', samples=32, beam=5}"
    ],
    "minimum Bayes risk by BLEU, 32 samples": [
        "decoding={kind='minimum-bayes-risk', samples=32, utility='bleu'}"
    ],
}
"""Measured with each run of the base and of all techniques combined."""
DECODING_TITLES = {
    "beam 5, sums not divided by length": "beam 5, no length penalty",
    "beam 5, divided by length^0.6": "beam 5, length penalty 0.6",
    "beam 5, divided by length^1.4": "beam 5, length penalty 1.4",
    "minimum Bayes risk, 32 samples and a beam of 5": (
        "minimum Bayes risk, 32 samples and the hypotheses of a beam of 5"
    ),
    "minimum Bayes risk by BLEU, 32 samples": "minimum Bayes risk with BLEU, 32 samples",
}
"""Names in the tables, where they differ from those in the result files."""
BASIC_DECODINGS = ["greedy", "beam 5"]
"""Measured with all other runs."""


@dataclass(frozen=True)
class Dataset:
    """A data set.

    name:      name on the command line
    languages: source and target language
    variants:  the variants trained on it
    """

    name: str
    languages: tuple[str, str]
    variants: Sequence[Variant]

    def recipe(self, multi30k: str | None) -> dict[str, Any]:
        """The tables of a recipe with the preset `small` and this data.

        multi30k: folder with the raw files of Multi30k
        """
        source, target = self.languages
        if not self.name.startswith("multi30k"):
            corpus = {"kind": "bundled", "source": source, "target": target}
            splits = dict.fromkeys(("train", "dev", "test"), corpus)
            return {"preset": "small", "data": {**splits, "merge_references": True}}
        splits = {
            split: {"kind": "parallel", "source": f"{file}.{source}.gz", "target": f"{file}.{target}.gz"}
            for split, file in (("train", "train"), ("dev", "val"), ("test", "test_2016_flickr"))
        }  # fmt: skip
        return {"preset": "small", "data": {"folder": multi30k or ".", **splits}}


DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("multi30k-de-en", ("de", "en"), [*VARIANTS, *PRESETS]),
        Dataset(
            "multi30k-en-de",
            ("en", "de"),
            [variant for variant in VARIANTS if variant.name in (BASE, ALL)] + [LOWERCASED],
        ),
        Dataset("tatoeba-de-en", ("de", "en"), VARIANTS),
    )
}


def config_of(
    dataset: Dataset, variant: Variant, multi30k: str | None, extra: Sequence[str]
) -> RunConfig:
    """The configuration of a variant. `extra` overrides all other settings.

    The variants in PRESETS are not based on BASE_SETTINGS.
    """
    base = [] if variant in PRESETS else BASE_SETTINGS
    settings = [*base, *variant.settings, *extra]
    return load_recipe(dataset.recipe(multi30k), settings, variant.name).config
