"""Recognises files that are not recipes, and says what to do with them."""

import re
import shlex
from pathlib import Path

from seqloom.core.file_kinds import (
    PARQUET_SIGNATURE,
    ZSTD_SIGNATURE,
    is_saved_dataset,
    recognise,
)

DATA_KINDS = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".tmx": "tmx",
    ".parquet": "parquet",
}
"""The kind of corpus for each suffix of a data file."""
COMPRESSED = (".gz", ".zst")
SAMPLE_BYTES = 65_536


def not_a_recipe(path: Path, data: bytes) -> str | None:
    """Return why a file is not a recipe and what to do. Return None if it may be a recipe.

    data: the content of the file
    """
    kind = recognise(path)
    kind_of_corpus = corpus_kind(path, data)
    is_readable = kind_of_corpus is not None and data.startswith(ZSTD_SIGNATURE)
    if kind is not None and not is_readable:
        return (
            f"is {kind.name}, not a recipe. A recipe is a text file that ends in .toml. To train "
            f"on the text in this file, {kind.advice} and name the result in a recipe"
        )
    if kind_of_corpus is None:
        return None
    return _offer_recipe("a data file", kind_of_corpus, path, data)


def saved_dataset_recipe(folder: Path) -> str | None:
    """Return an error message for a user who gave a Hugging Face dataset instead of a recipe.

    The message says how to train on the dataset. Returns None if the folder is not such a dataset.
    """
    if not is_saved_dataset(folder):
        return None
    split = folder / "train" if is_saved_dataset(folder / "train") else folder
    return _offer_recipe("a Hugging Face dataset", "arrow", split, b"")


def _offer_recipe(name: str, kind_of_corpus: str, path: Path, data: bytes) -> str:
    settings = ""
    if kind_of_corpus == "tmx":
        source, target = _languages(data)
        settings = f', source = "{source}", target = "{target}"'
    elif kind_of_corpus in ("parquet", "arrow"):
        settings = ', source = "source", target = "target"'
    return (
        f"is {name}, not a recipe. To train on it, {_new_recipe(kind_of_corpus, path)}write a file "
        f"my.toml with these two lines:\n"
        f"  [data]\n"
        f'  train = {{kind = "{kind_of_corpus}", path = "{path}"{settings}}}\n'
        f"Then check the data with `seqloom doctor my.toml`, and train with "
        f"`seqloom train my.toml`"
    )


def _new_recipe(kind_of_corpus: str, path: Path) -> str:
    """Return a part of an error message: the advice to create a recipe with `seqloom new`.

    Returns "" if `seqloom new` does not support this kind of corpus.
    """
    if kind_of_corpus not in ("tsv", "csv", "jsonl"):
        return ""
    return f"run `seqloom new {shlex.quote(str(path))} --recipe my.toml`, or "


def _languages(data: bytes) -> tuple[str, str]:
    """Return the first two languages of a translation memory; "de" and "en" if they are not found,
    for example because the file is compressed."""
    found = re.findall(rb"<tuv[^>]*\blang\s*=\s*[\"']([\w-]+)[\"']", data[:SAMPLE_BYTES])
    languages = list(dict.fromkeys(language.decode() for language in found))
    return (languages[0], languages[1]) if len(languages) > 1 else ("de", "en")


def corpus_kind(path: Path, data: bytes) -> str | None:
    """Return the kind of corpus in this file, such as "tsv"; None if it is not a data file.

    data: the start of the file
    """
    suffixes = path.suffixes[:-1] if path.suffix in COMPRESSED else path.suffixes
    suffix = suffixes[-1] if suffixes else ""
    if suffix in DATA_KINDS:
        return DATA_KINDS[suffix]
    if data.startswith(PARQUET_SIGNATURE):
        return "parquet"
    lines = [line for line in data[:SAMPLE_BYTES].split(b"\n")[:20] if line.strip()]
    if suffix == ".toml" or not lines:
        return None
    if all(b"\t" in line.strip() for line in lines):
        return "tsv"
    return "jsonl" if lines[0].startswith(b"{") else None
