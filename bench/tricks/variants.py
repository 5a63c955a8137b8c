"""The base, the tricks that are added to it or taken from it one by one, and the data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig

BASE = "base"
ALL = "all together"
SIDES = ("encoder", "decoder")


def both(setting: str) -> list[str]:
    """The same setting of encoder and decoder."""
    return [f"model.{side}.{setting}" for side in SIDES]


BASE_SETTINGS = [
    *both("dropout=0.3"),
    "training.averaging={kind='none'}",
    "training.steps=3500",
    "training.batch_tokens=4096",
    "training.optimizer.learning_rate=2e-3",
    "training.schedule.warmup=350",
    "training.evaluate_every=1750",
    "training.checkpoint_every=3500",
]
"""Over the preset `small`: a plain Transformer of today, without any of the tricks below."""


@dataclass(frozen=True)
class Variant:
    """The base with something added, taken away or replaced.

    source: where it comes from, or why it is here
    """

    name: str
    settings: Sequence[str]
    source: str


VARIANTS = [
    Variant(BASE, [], "4+4 layers of 256, 8,000 joint pieces, one matrix, dropout 0.3, cosine"),
    Variant("+ R-Drop, α = 5", ["training.r_drop=5.0"], "Liang et al. 2021"),
    Variant("+ R-Drop, α = 2", ["training.r_drop=2.0"], "Liang et al. 2021"),
    Variant(
        "+ moving average of the weights",
        ["training.averaging={kind='moving', decay=0.998}"],
        "Polyak and Juditsky 1992",
    ),
    Variant(
        "+ mean of the last 5 weights",
        ["training.averaging={kind='last', count=5}", "training.evaluate_every=350"],
        "Vaswani et al. 2017",
    ),
    Variant("+ BPE dropout 0.1", ["text.sampling={alpha=0.1}"], "Provilkov et al. 2020"),
    Variant("+ word dropout 0.1", both("embedding.word_dropout=0.1"), "Sennrich and Zhang 2019"),
    Variant("+ noise on embeddings 0.1", both("embedding.noise=0.1"), "the lectures"),
    Variant(
        "+ dropout inside attention and feed-forward 0.1",
        [*both("attention.dropout=0.1"), *both("feedforward_dropout=0.1")],
        "Vaswani et al. 2017",
    ),
    Variant(
        "+ minimum risk in the last tenth",
        ["training.risk={after=3150, samples=5}", "training.stopping.score=bleu"],
        "Shen et al. 2016",
    ),
    Variant(
        "deep encoder, shallow decoder (6+2)",
        ["model.encoder.layers=6", "model.decoder.layers=2"],
        "Kasai et al. 2021",
    ),
    Variant("4,000 pieces", ["text.tokenizer.size=4000"], "Sennrich and Zhang 2019"),
    Variant("norms last", both("norm=post"), "Vaswani et al. 2017"),
    Variant("rotary positions", both("positions={kind='rotary'}"), "Su et al. 2021"),
    Variant("- label smoothing", ["training.label_smoothing=0.0"], "Szegedy et al. 2016"),
    Variant("- dropout 0.3, but 0.1", both("dropout=0.1"), "Srivastava et al. 2014"),
    Variant("- one matrix for all embeddings", ["model.tie=none"], "Press and Wolf 2017"),
    Variant(
        "- cosine, but 1/√step",
        ["training.schedule={kind='inverse-square-root', warmup=350}"],
        "Loshchilov and Hutter 2017",
    ),
    Variant(
        ALL,
        [
            "training.r_drop=5.0",
            "training.averaging={kind='moving', decay=0.998}",
        ],
        "R-Drop and a moving average",
    ),
]
PRESETS = [
    Variant(f"preset {name}", [f"preset={name}"], "as it is")
    for name in ("tiny", "small", "low-resource")
]
LOWER = Variant("lower-cased text", ["text.lowercase=true"], "as in the published figures")

DECODINGS: dict[str, list[str]] = {
    "greedy": ["decoding={kind='greedy'}"],
    "beam 5": [],
    "beam 10": ["decoding.width=10"],
    "beam 5, sums not divided by length": ["decoding.length_exponent=0.0"],
    "beam 5, divided by length^0.6": ["decoding.length_exponent=0.6"],
    "beam 5, divided by length^1.4": ["decoding.length_exponent=1.4"],
    "minimum Bayes risk, 32 samples": ["decoding={kind='minimum-bayes-risk', samples=32}"],
    "minimum Bayes risk, 32 samples and a beam of 5": [
        "decoding={kind='minimum-bayes-risk', samples=32, beam=5}"
    ],
    "minimum Bayes risk by BLEU, 32 samples": [
        "decoding={kind='minimum-bayes-risk', samples=32, utility='bleu'}"
    ],
}
"""Tried with every run of the base and of all together, without training again."""
FEW = ["greedy", "beam 5"]
"""Tried with every other run."""


@dataclass(frozen=True)
class Dataset:
    """name: as on the command line; languages: of the two sides."""

    name: str
    languages: tuple[str, str]
    variants: Sequence[Variant]

    def tables(self, multi30k: str | None) -> dict[str, Any]:
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
    one.name: one
    for one in (
        Dataset("multi30k-de-en", ("de", "en"), [*VARIANTS, *PRESETS]),
        Dataset(
            "multi30k-en-de",
            ("en", "de"),
            [one for one in VARIANTS if one.name in (BASE, ALL)] + [LOWER],
        ),
        Dataset("tatoeba-de-en", ("de", "en"), VARIANTS),
    )
}


def config_of(
    dataset: Dataset, variant: Variant, multi30k: str | None, extra: Sequence[str]
) -> RunConfig:
    """The whole recipe of a variant; `extra` has the last word. A preset comes as it is."""
    plain = [] if variant in PRESETS else BASE_SETTINGS
    settings = [*plain, *variant.settings, *extra]
    return load_recipe(dataset.tables(multi30k), settings, variant.name).config
