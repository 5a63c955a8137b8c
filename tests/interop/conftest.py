"""Models of transformers that several tests use, and their imports."""

import sys
from pathlib import Path

import pytest
from huggingface_models import LANGUAGES, sentences, write_marian

from seqloom.config.loading.loader import load_recipe
from seqloom.interop.importer import import_model
from seqloom.training.loop import train

# The tests of commands use cli_runner.
sys.path.append(str(Path(__file__).parents[1] / "cli"))


@pytest.fixture(scope="session", autouse=True)
def quiet_transformers() -> None:
    """Turn off the progress bars and warnings of transformers."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


@pytest.fixture(scope="session")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian model with one target language."""
    return write_marian(tmp_path_factory.mktemp("marian") / "opus-mt-de-en", trained=True)


@pytest.fixture(scope="session")
def marian_run(marian: Path) -> Path:
    run = marian.parent / "run"
    import_model(marian, run)
    return run


@pytest.fixture(scope="session")
def multilingual_marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian model with the target languages `LANGUAGES`."""
    return write_marian(tmp_path_factory.mktemp("multilingual") / "opus-mt-en-mul", LANGUAGES)


@pytest.fixture(scope="session")
def exportable_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of the preset "exportable", trained on a few bundled sentences."""
    folder = tmp_path_factory.mktemp("exportable")
    lines = [
        f"{source}\t{target}\n"
        for source, target in zip(sentences("source"), sentences("target"), strict=True)
    ]
    shortest = sorted(lines, key=len)[:60]
    (folder / "pairs.tsv").write_text("".join(shortest), encoding="utf-8")
    data = {"kind": "tsv", "path": str(folder / "pairs.tsv")}
    side = {"width": 32, "layers": 2, "feedforward": 48, "dropout": 0.0, "attention": {"heads": 4}}
    recipe = load_recipe(
        {
            "preset": "exportable",
            "data": {"train": data, "dev": data, "test": data},
            "text": {"tokenizer": {"size": 250}},
            "model": {"encoder": side, "decoder": side},
            "training": {
                "steps": 100,
                "batch_tokens": 512,
                "label_smoothing": 0.0,
                "evaluate_every": 100,
                "checkpoint_every": 100,
                "optimizer": {"learning_rate": 4e-3},
                "schedule": {"kind": "constant", "warmup": 10},
                "averaging": {"kind": "none"},
                "stopping": {"score": "loss"},
            },
        }
    )
    train(recipe.config, folder / "run")
    return folder / "run"
