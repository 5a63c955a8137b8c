"""A German to English translation model. Several claims share it, so it is trained once."""

from dataclasses import dataclass

from seqloom.config.schema.recipe import RunConfig
from seqloom.data.example import Example
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.lab.claim import Size
from seqloom.lab.models.trained_models import Tables, build_recipe, training_tables
from seqloom.runs.run import Run

_PAIRS: Tables = {"kind": "bundled", "source": "de", "target": "en"}
BUNDLED: Tables = {"train": _PAIRS, "dev": _PAIRS, "test": _PAIRS, "merge_references": True}
SUBWORDS: Tables = {"tokenizer": {"kind": "subwords", "algorithm": "bpe", "size": 2_000}}


@dataclass(frozen=True)
class TranslationSettings:
    """rate: learning rate; sentences: test sentences."""

    steps: int
    width: int
    rate: float
    sentences: int


TRANSLATION_SIZES: dict[Size, TranslationSettings] = {
    "tiny": TranslationSettings(steps=2, width=8, rate=6e-3, sentences=6),
    "small": TranslationSettings(steps=400, width=128, rate=6e-3, sentences=500),
    "full": TranslationSettings(steps=4_000, width=512, rate=1e-3, sentences=1_000),
}


def translation_recipe(settings: TranslationSettings, seed: int) -> RunConfig:
    """A bidirectional GRU encoder and a GRU decoder with attention."""
    shared = {"kind": "recurrent", "width": settings.width, "dropout": 0.1}
    attention = {"score": {"kind": "dot"}, "projection": "linear"}
    return build_recipe(
        {
            "data": BUNDLED,
            "text": SUBWORDS,
            "model": {
                "encoder": shared,
                "decoder": {**shared, "attention": attention, "readout": "tanh"},
            },
            "training": {
                **training_tables(settings.steps, seed, settings.rate),
                "label_smoothing": 0.1,
            },
        }
    )


def read_test_sentences(run: Run, count: int) -> list[Example]:
    """The first sentences of the test split, each with all its references."""
    return merge_references(list(read_split(run.config.data, "test")))[:count]
