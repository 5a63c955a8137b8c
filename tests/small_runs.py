"""One small run of every kind, trained for a moment: what they say is nonsense, how is not."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import seqloom
from seqloom.config.loading.loader import load_recipe
from tiny_runs import SPEAKER, TRANSFORMER, recipe
from toy_languages import write_languages

QUICK = {
    "steps": 6,
    "batch_tokens": 256,
    "evaluate_every": 6,
    "checkpoint_every": 6,
    "optimizer": {"learning_rate": 0.01},
    "schedule": {"kind": "constant"},
}
SIZE = 16


def everyone(data: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(("train", "dev", "test"), data)


def train_reverser(folder: Path) -> Path:
    """Turns letters around; knows no languages."""
    seqloom.train(recipe("training.steps=40", "training.evaluate_every=40"), folder)
    return folder


def train_transformer(folder: Path) -> Path:
    seqloom.train(recipe(*TRANSFORMER, "training.steps=4"), folder)
    return folder


def train_snail(folder: Path) -> Path:
    """Says two hundred tokens whatever it is asked."""
    slow = "decoding={kind='beam', width=2, min_length=200, max_length=220}"
    seqloom.train(recipe("training.steps=4", slow), folder)
    return folder


def train_speaker(folder: Path) -> Path:
    seqloom.train(recipe(*SPEAKER, "training.steps=4"), folder)
    return folder


def train_polyglot(folder: Path) -> Path:
    """English and German to each other and to French, told apart by tags."""
    data = write_languages(folder.parent / "languages", ["train"], lines=60)
    tables = {
        "data": {
            "folder": str(data),
            **everyone(
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
        "training": QUICK,
    }
    seqloom.train(load_recipe(tables, ()).config, folder)
    return folder


def train_labeller(folder: Path) -> Path:
    """Tells English from German."""
    words = {"en": ("dog", "cat", "man"), "de": ("hund", "katze", "mann")}
    pairs = [
        f"{word} {other}\t{code}\n" for code, own in words.items() for word in own for other in own
    ]
    path = folder.parent / "labels.tsv"
    path.write_text("".join(pairs) * 6, encoding="utf-8")
    tables = {
        "task": {"kind": "labels"},
        "data": everyone({"kind": "tsv", "path": str(path)}),
        "text": {"tokenizer": {"kind": "characters"}, "target_tokenizer": {"kind": "whitespace"}},
        "model": {
            "encoder": {"kind": "recurrent", "width": 12},
            "decoder": {"kind": "labels", "pooling": "mean"},
        },
        "training": {**QUICK, "steps": 60, "evaluate_every": 60},
        "decoding": {"kind": "greedy"},
    }
    seqloom.train(load_recipe(tables, ()).config, folder)
    return folder


def picture(colour: str, size: tuple[int, int] = (24, 20), form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, form)
    return buffer.getvalue()


def train_captioner(folder: Path) -> Path:
    data = folder.parent / "photographs"
    data.mkdir()
    with zipfile.ZipFile(data / "images.zip", "w") as archive:
        for number in range(6):
            archive.writestr(f"{number}.png", picture(("red", "blue")[number % 2]))
    lines = [f"{number}.png\ta {('red', 'blue')[number % 2]} wall\n" for number in range(6)]
    (data / "captions.txt").write_text("".join(lines), encoding="utf-8")
    captions = {"kind": "captions", "images": "images.zip", "captions": "captions.txt"}
    tables = {
        "task": {"kind": "captioning", "size": SIZE, "margin": 4},
        "data": {"folder": str(data), **everyone(captions)},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {
            "encoder": {"kind": "convolution", "width": 16, "channels": [8, 16], "blocks": 1},
            "decoder": {"kind": "recurrent", "width": 16, "initial_state": "mlp"},
        },
        "training": QUICK,
        "decoding": {"kind": "greedy"},
    }
    tables["model"]["decoder"]["attention"] = {"projection": "linear"}
    seqloom.train(load_recipe(tables, ()).config, folder)
    return folder


def train_forecaster(folder: Path) -> Path:
    """A level, and the push that moves it, which is known beforehand."""
    push = np.random.default_rng(5).normal(size=80)
    rows = [f"{level:.6f},{one:.6f}" for level, one in zip(np.cumsum(push), push, strict=True)]
    path = folder.parent / "tide.csv"
    path.write_text("\n".join(["level,push", *rows]) + "\n", encoding="utf-8")
    series = {"kind": "series", "path": str(path), "columns": "level", "context": "push"}
    tables = {
        "task": {"kind": "forecast", "observe": 6, "predict": 3},
        "data": everyone(series),
        "model": {
            "encoder": {"kind": "recurrent", "width": 12},
            "decoder": {"kind": "recurrent", "width": 12},
        },
        "training": QUICK,
    }
    seqloom.train(load_recipe(tables, ()).config, folder)
    return folder


TRAINERS = {
    "reverser": train_reverser,
    "transformer": train_transformer,
    "snail": train_snail,
    "speaker": train_speaker,
    "polyglot": train_polyglot,
    "labeller": train_labeller,
    "captioner": train_captioner,
    "forecaster": train_forecaster,
}
