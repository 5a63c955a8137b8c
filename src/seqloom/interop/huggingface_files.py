"""Reads the files of a Hugging Face model folder.

Pickle files, which can contain code, are never read.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from seqloom.core.errors import DataError, NotFoundError, StorageError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that contains a JSON object."""
    try:
        content = json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not valid JSON: {error}. Download it again.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: is not a JSON object. Download it again.")
    return content


def read_json_if_present(path: Path) -> dict[str, Any]:
    """Read a JSON object; return an empty one if there is no such file."""
    return read_json(path) if path.is_file() else {}


def check_files(folder: Path, names: Iterable[str]) -> None:
    """If files are missing, raise a NotFoundError that lists all of them."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise NotFoundError(
            f"{folder}: is incomplete. Missing: {', '.join(missing)}. Download all files of the model."
        )


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all weights of a Hugging Face model folder as float32.

    The folder contains one safetensors file, or several with an index file.
    """
    if (folder / WEIGHTS).is_file():
        return _read_tensors(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        return _read_shards(folder)
    if any((folder / name).is_file() for name in PICKLES):
        raise DataError(_pickle_message(folder))
    raise NotFoundError(
        f"{folder}: has no weights. Missing: {WEIGHTS}. Download all files of the model."
    )


def _read_shards(folder: Path) -> dict[str, Tensor]:
    index = read_json(folder / INDEX).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(name, str) for name in index.values()):
        raise DataError(f"{folder / INDEX}: has no valid 'weight_map'. Download it again.")
    shards = sorted(set(index.values()))
    outside = [name for name in shards if Path(name).name != name]
    if outside:
        raise DataError(
            f"{folder / INDEX}: names files outside the folder: {', '.join(outside)}. Download it "
            "again from a source that you trust."
        )
    check_files(folder, shards)
    weights: dict[str, Tensor] = {}
    for name in shards:
        weights |= _read_tensors(folder / name)
    missing = sorted(index.keys() - weights.keys())
    if missing:
        raise DataError(
            f"{folder / INDEX}: lists weights that no file contains: {', '.join(missing[:5])}. "
            "Download all files again."
        )
    return weights


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        tensors = safetensors.torch.load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise StorageError(
            f"{path}: is damaged or incomplete: {error}. Download it again."
        ) from error
    return {name: tensor.float() for name, tensor in tensors.items()}


def _pickle_message(folder: Path) -> str:
    converted = f"{folder.name}-safetensors"
    return (
        f"{folder}: has only {PICKLES[0]}, a pickle file. Reading a pickle file can run code that "
        "it contains, so seqloom does not read it. If you trust its origin, convert it with "
        f"transformers, and import {converted}:\n"
        '  python -c "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer; '
        f"AutoModelForSeq2SeqLM.from_pretrained('{folder}').save_pretrained('{converted}'); "
        f"AutoTokenizer.from_pretrained('{folder}').save_pretrained('{converted}')\""
    )
