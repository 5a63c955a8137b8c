"""Imports a model of another toolkit: recognises its format and writes a run folder."""

from pathlib import Path

from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.core.file_kinds import recognise
from seqloom.interop.foreign_model import ForeignModel, check_unused, write_run
from seqloom.interop.huggingface_files import CONFIG, read_json
from seqloom.interop.marian import read_marian

SUPPORTED = "Marian and OPUS-MT (model_type marian)"


def import_model(path: Path, run: Path) -> ForeignModel:
    """Read the model at `path` and write it as a run folder. Returns the model that was read."""
    check_unused(run)
    foreign = read_foreign(path)
    write_run(foreign, run)
    return foreign


def read_foreign(path: Path) -> ForeignModel:
    """Read a model of another toolkit.

    path: a folder in the format of Hugging Face
    """
    if not path.exists():
        raise NotFoundError(f"{path}: there is no such folder")
    if (path / "config.toml").is_file():
        raise ConfigError(f"{path}: is a run folder already. Use it as it is.")
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
            return read_marian(path)
        case _:
            raise ConfigError(
                f"{path / CONFIG}: seqloom cannot import models of the type {model_type!r}. "
                f"Supported: {SUPPORTED}."
            )
