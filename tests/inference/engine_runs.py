"""Settings of a small Transformer run that CTranslate2 supports."""

from pathlib import Path

from seqloom.inference.options import PredictionOptions
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

TRANSFORMER = tuple(
    f"model.{side}={{kind='transformer', width=16, layers=1, feedforward=32, dropout=0.0, "
    "attention={heads=2}, positions={kind='learned', max_length=24}}"
    for side in ("encoder", "decoder")
)
TWELVE_LETTERS = tuple(f"data.{split}.symbols=12" for split in ("train", "dev", "test"))
TEXTS = ["abcd", "", "b", "  ", "dlk", "abc", "\t", "zzz", "bcda", "a", "kkjihg"]
NO_ATTENTION = PredictionOptions(attention=False)


def train_transformer(folder: Path) -> Path:
    """Reversal of strings of twelve letters, well enough that outputs end."""
    settings = (*TRANSFORMER, *TWELVE_LETTERS, "data.train.examples=400", "training.steps=120")
    train(tiny_config(*settings), folder)
    return folder
