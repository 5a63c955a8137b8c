"""Imports a model of another toolkit: recognises its format and writes a run folder."""

from pathlib import Path

from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.core.file_kinds import recognise
from seqloom.interop.foreign_model import ForeignModel, check_unused, write_run
from seqloom.interop.huggingface_files import CONFIG, read_json
from seqloom.interop.m2m100 import read_m2m100
from seqloom.interop.marian import read_marian
from seqloom.interop.marian_npz import read_marian_npz

SUPPORTED = (
    "Hugging Face folders of Marian and OPUS-MT (model_type marian), M2M100 and NLLB (model_type "
    "m2m_100), and folders with a Marian .npz file"
)


def import_model(path: Path, run: Path, source_language: str | None = None) -> ForeignModel:
    """Read the model at `path` and write it as a run folder. Returns the model that was read.

    source_language: code of the source language, only for M2M100 and NLLB models. Default: None,
                     which means the source language in the tokenizer settings, or else English
    """
    check_unused(run)
    foreign = read_foreign(path, source_language)
    write_run(foreign, run)
    return foreign


def read_foreign(path: Path, source_language: str | None = None) -> ForeignModel:
    """Read a model of another toolkit.

    path:            a folder in the format of Hugging Face or of Marian
    source_language: code of the source language, only for M2M100 and NLLB models. Default: None,
                     which means the source language in the tokenizer settings, or else English
    """
    if not path.exists():
        raise NotFoundError(f"{path}: there is no such folder")
    if (path / "config.toml").is_file():
        raise ConfigError(f"{path}: is a run folder already. It needs no import.")
    if not (path / CONFIG).is_file() and any(path.glob("*.npz")):
        _refuse_source_language(path, source_language)
        return read_marian_npz(path)
    if not (path / CONFIG).is_file():
        kind = recognise(path)
        what = f"is {kind.name}" if kind else f"has no {CONFIG}"
        raise NotFoundError(
            f"{path}: is not a model that seqloom can import: it {what}. Supported: {SUPPORTED}."
        )
    settings = read_json(path / CONFIG)
    model_type = settings.get("model_type")
    match model_type:
        case "marian":
            _refuse_source_language(path, source_language)
            return read_marian(path)
        case "m2m_100":
            return read_m2m100(path, source_language)
        case "t5" | "mt5" | "umt5":
            raise ConfigError(
                f"{path / CONFIG}: seqloom cannot import T5, mT5 and ByT5 models (model_type "
                f"{model_type!r}): they have relative positions, RMS normalisation and layers without "
                "biases, which seqloom does not have. Use the model with transformers, or let it "
                "translate texts and train a seqloom model on these translations. "
                f"Supported: {SUPPORTED}."
            )
        case _:
            raise ConfigError(
                f"{path / CONFIG}: seqloom cannot import models of the type {model_type!r}. "
                f"Supported: {SUPPORTED}."
            )


def _refuse_source_language(path: Path, language: str | None) -> None:
    if language is not None:
        raise ConfigError(
            f"{path}: a Marian model does not use a source language code. Remove --from {language}"
        )
