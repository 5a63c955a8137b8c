"""A German to English translator that several claims look at: trained once for all of them."""

from dataclasses import dataclass

from seqloom.config.schema.recipe import RunConfig
from seqloom.data.example import Example
from seqloom.data.splits import merge_references, read_split
from seqloom.lab.claim import Size
from seqloom.lab.experiment import Tables, recipe, training
from seqloom.runs.run import Run

_PAIRS: Tables = {"kind": "bundled", "source": "de", "target": "en"}
BUNDLED: Tables = {"train": _PAIRS, "dev": _PAIRS, "test": _PAIRS, "merge_references": True}
SUBWORDS: Tables = {"tokenizer": {"kind": "subwords", "algorithm": "bpe", "size": 2_000}}


@dataclass(frozen=True)
class TranslatorSettings:
    """How much a translator learns, and how many sentences it is asked."""

    steps: int
    width: int
    rate: float
    sentences: int


TRANSLATOR_SIZES: dict[Size, TranslatorSettings] = {
    "tiny": TranslatorSettings(steps=2, width=8, rate=6e-3, sentences=6),
    "small": TranslatorSettings(steps=400, width=128, rate=6e-3, sentences=500),
    "full": TranslatorSettings(steps=4_000, width=512, rate=1e-3, sentences=1_000),
}


def translator(settings: TranslatorSettings, seed: int) -> RunConfig:
    """A GRU that reads in both directions and one that writes, with attention."""
    shared = {"kind": "recurrent", "width": settings.width, "dropout": 0.1}
    attention = {"score": {"kind": "dot"}, "projection": "linear"}
    return recipe(
        {
            "data": BUNDLED,
            "text": SUBWORDS,
            "model": {
                "encoder": shared,
                "decoder": {**shared, "attention": attention, "readout": "tanh"},
            },
            "training": {
                **training(settings.steps, seed, settings.rate),
                "label_smoothing": 0.1,
            },
        }
    )


def unseen_sentences(run: Run, count: int) -> list[Example]:
    """The first so many of the test split, with all their references."""
    return merge_references(list(read_split(run.config.data, "test")))[:count]
