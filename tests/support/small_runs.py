"""One small run of every kind. Training is too short for good outputs."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import seqloom
from seqloom.config.loading.loader import load_recipe
from support.tiny_runs import LANGUAGE_MODEL, TRANSFORMER, tiny_config
from support.toy_languages import write_languages

SHORT_TRAINING = {
    "steps": 6,
    "batch_tokens": 256,
    "evaluate_every": 6,
    "checkpoint_every": 6,
    "optimizer": {"learning_rate": 0.01},
    "schedule": {"kind": "constant"},
}
IMAGE_SIZE = 16


def all_splits(data: dict[str, Any]) -> dict[str, Any]:
    """The same data for every split."""
    return dict.fromkeys(("train", "dev", "test"), data)


def train_reverser(folder: Path) -> Path:
    """Reverses strings; has a single target language. Texts are split into sentences."""
    settings = ("training.steps=40", "training.evaluate_every=40", "text.split_sentences=true")
    seqloom.train(tiny_config(*settings, "text.pass_through=false"), folder)
    return folder


def train_transformer(folder: Path) -> Path:
    """Reverses strings with a Transformer."""
    seqloom.train(tiny_config(*TRANSFORMER, "training.steps=4"), folder)
    return folder


def train_slow_run(folder: Path) -> Path:
    """Generates two hundred tokens for every input."""
    slow = "decoding={kind='beam', width=2, min_length=200, max_length=220}"
    seqloom.train(tiny_config("training.steps=4", slow), folder)
    return folder


def train_language_model(folder: Path) -> Path:
    """A language model of short strings."""
    seqloom.train(tiny_config(*LANGUAGE_MODEL, "training.steps=4"), folder)
    return folder


def train_multilingual(folder: Path) -> Path:
    """Translates between English and German, and from both to French. Tags name the target."""
    data = write_languages(folder.parent / "languages", ["train"], lines=60)
    tables = {
        "data": {
            "folder": str(data),
            **all_splits(
                {
                    "kind": "languages",
                    "path": "train.{language}.gz",
                    "pairs": ["en-de", "en-fr", "de-fr"],
                }
            ),
        },
        "text": {"tokenizer": {"kind": "words"}},
        "model": {
            "encoder": {"kind": "recurrent", "width": 16},
            "decoder": {"kind": "recurrent", "width": 16},
        },
        "training": SHORT_TRAINING,
    }
    seqloom.train(load_recipe(tables, ()).config, folder)
    return folder


def train_labeller(folder: Path) -> Path:
    """Labels words as English or German."""
    words = {"en": ("dog", "cat", "man"), "de": ("hund", "katze", "mann")}
    pairs = [
        f"{first} {second}\t{code}\n"
        for code, vocabulary in words.items()
        for first in vocabulary
        for second in vocabulary
    ]
    path = folder.parent / "labels.tsv"
    path.write_text("".join(pairs) * 6, encoding="utf-8")
    tables = {
        "task": {"kind": "labels"},
        "data": all_splits({"kind": "tsv", "path": str(path)}),
        "text": {"tokenizer": {"kind": "characters"}, "target_tokenizer": {"kind": "whitespace"}},
        "model": {
            "encoder": {"kind": "recurrent", "width": 12},
            "decoder": {"kind": "labels", "pooling": "mean"},
        },
        "training": {**SHORT_TRAINING, "steps": 60, "evaluate_every": 60},
        "decoding": {"kind": "greedy"},
    }
    seqloom.train(load_recipe(tables, ()).config, folder)
    return folder


def image_bytes(colour: str, size: tuple[int, int] = (24, 20), form: str = "PNG") -> bytes:
    """An image file of one colour."""
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, form)
    return buffer.getvalue()


def train_captioner(folder: Path) -> Path:
    """Describes red and blue images."""
    data = folder.parent / "photographs"
    data.mkdir()
    with zipfile.ZipFile(data / "images.zip", "w") as archive:
        for number in range(6):
            archive.writestr(f"{number}.png", image_bytes(("red", "blue")[number % 2]))
    lines = [f"{number}.png\ta {('red', 'blue')[number % 2]} wall\n" for number in range(6)]
    (data / "captions.txt").write_text("".join(lines), encoding="utf-8")
    captions = {"kind": "captions", "images": "images.zip", "captions": "captions.txt"}
    tables = {
        "task": {"kind": "captioning", "size": IMAGE_SIZE, "margin": 4},
        "data": {"folder": str(data), **all_splits(captions)},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {
            "encoder": {"kind": "convolution", "width": 16, "channels": [8, 16], "blocks": 1},
            "decoder": {"kind": "recurrent", "width": 16, "initial_state": "mlp"},
        },
        "training": SHORT_TRAINING,
        "decoding": {"kind": "greedy"},
    }
    tables["model"]["decoder"]["attention"] = {"projection": "linear"}
    seqloom.train(load_recipe(tables, ()).config, folder)
    return folder


def train_forecaster(folder: Path) -> Path:
    """Forecasts a level from its changes, whose future values are given as context."""
    changes = np.random.default_rng(5).normal(size=80)
    rows = [
        f"{level:.6f},{change:.6f}"
        for level, change in zip(np.cumsum(changes), changes, strict=True)
    ]
    path = folder.parent / "tide.csv"
    path.write_text("\n".join(["level,push", *rows]) + "\n", encoding="utf-8")
    series = {"kind": "series", "path": str(path), "columns": "level", "context": "push"}
    tables = {
        "task": {"kind": "forecast", "observe": 6, "predict": 3},
        "data": all_splits(series),
        "model": {
            "encoder": {"kind": "recurrent", "width": 12},
            "decoder": {"kind": "recurrent", "width": 12},
        },
        "training": SHORT_TRAINING,
    }
    seqloom.train(load_recipe(tables, ()).config, folder)
    return folder


TRAINERS = {
    "reverser": train_reverser,
    "transformer": train_transformer,
    "snail": train_slow_run,
    "speaker": train_language_model,
    "polyglot": train_multilingual,
    "labeller": train_labeller,
    "captioner": train_captioner,
    "forecaster": train_forecaster,
}
