"""Recognises files that are not recipes, and says what to do with them."""

import shlex
from pathlib import Path

from seqloom.core.file_kinds import recognise

DATA_KINDS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}
"""The kind of corpus for each suffix of a data file."""
SAMPLE_BYTES = 65_536


def not_a_recipe(path: Path, data: bytes) -> str | None:
    """Return why a file is not a recipe and what to do, or None if it may be one.

    data: the content of the file
    """
    kind = recognise(path)
    if kind is not None:
        return (
            f"is {kind.name}, not a recipe. A recipe is a text file that ends in .toml. To train "
            f"on the text in this file, {kind.advice} and name the result in a recipe"
        )
    kind_of_corpus = corpus_kind(path, data)
    if kind_of_corpus is None:
        return None
    return (
        f"is a data file, not a recipe. Write a recipe for it with `seqloom new "
        f"{shlex.quote(str(path))} --recipe my.toml`, or write a file my.toml with these two lines:\n"
        f"  [data]\n"
        f'  train = {{kind = "{kind_of_corpus}", path = "{path}"}}\n'
        f"Then check the data with `seqloom doctor my.toml`, and train with "
        f"`seqloom train my.toml`"
    )


def corpus_kind(path: Path, data: bytes) -> str | None:
    """Return the kind of corpus that reads this file, or None if the file is not a data file.

    data: the start of the file
    """
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    suffix = suffixes[-1] if suffixes else ""
    if suffix in DATA_KINDS:
        return DATA_KINDS[suffix]
    lines = [line for line in data[:SAMPLE_BYTES].split(b"\n")[:20] if line.strip()]
    if suffix == ".toml" or not lines:
        return None
    if all(b"\t" in line.strip() for line in lines):
        return "tsv"
    return "jsonl" if lines[0].startswith(b"{") else None
