"""Writes a recipe for data files of text pairs: detects the format, counts the pairs, and chooses
the preset and the sizes of the dev and test splits."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.presets import PRESET_LIMITS, preset_for
from seqloom.config.loading.recipe_files import corpus_kind
from seqloom.config.loading.toml import format_value
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.core.file_kinds import recognise
from seqloom.data.readers.text_files import FilePart, read_lines_or_problems
from seqloom.data.recipe import MAX_COUNTED, count_pairs

SAMPLE_LINES = 20
"""Number of lines from which the format of a file is detected."""
COMMON_NAMES = (
    ("src", "tgt"),
    ("source", "target"),
    ("input", "output"),
    ("question", "answer"),
)
"""Names of source and target that JSONL and CSV files often use."""
HELD_OUT_PAIRS = 1_000
"""Number of pairs to hold out for each of the splits dev and test, if the file has enough pairs."""
MAX_FRACTION = 0.05
SMALL_FILE = 200
SMALL_FILE_FRACTION = 0.2
"""Share of the pairs to hold out of a file with fewer than SMALL_FILE pairs."""


@dataclass(frozen=True)
class NewRecipe:
    """A recipe for data files.

    corpus: the settings of the training corpus, which become its table in the recipe
    pairs:  number of usable pairs. Counting stops at MAX_COUNTED
    preset: name of the preset that suits this number
    text:   the recipe in TOML, with comments
    """

    corpus: Mapping[str, Any]
    pairs: int
    preset: str
    text: str

    @property
    def shown_pairs(self) -> str:
        """The number of pairs as text: "1,234 pairs"."""
        if self.pairs >= MAX_COUNTED:
            return f"more than {MAX_COUNTED - 1:,} pairs"
        return f"{self.pairs:,} pairs"


def new_recipe(files: Sequence[Path], source: str | None, target: str | None) -> NewRecipe:
    """Return a recipe for one file of pairs, or for two files: sources and targets.

    source, target: the languages, such as "de" and "en". They become the name of the corpus. For a
                    CSV or JSONL file, they can also be the columns or keys of source and target
    """
    corpus = detect_corpus(files, source, target)
    # With the corpus itself as dev split, no pairs are held out, and all of them are counted.
    draft = load_recipe({"preset": "tiny", "data": {"train": corpus, "dev": corpus}})
    pairs = count_pairs(draft.config.data)
    preset = preset_for(pairs)
    return NewRecipe(corpus, pairs, preset, _format(corpus, pairs, preset))


def detect_corpus(
    files: Sequence[Path], source: str | None, target: str | None
) -> Mapping[str, Any]:
    """Detect the format of data files. Return the recipe table of a corpus that reads them.

    source, target: the languages, such as "de" and "en". They become the name of the corpus. For a
                    CSV or JSONL file, they can also be the columns or keys of source and target
    """
    if len(files) not in (1, 2):
        raise ConfigError(
            f"{len(files)} files given. Give one file of pairs, or two files: sources and targets."
        )
    for file in files:
        _check_is_text(file)
    name = {} if source is None or target is None else {"name": f"{source}-{target}"}
    if len(files) == 2:
        return {"kind": "parallel", "source": str(files[0]), "target": str(files[1]), **name}
    (path,) = files
    lines = _sample(path)
    match corpus_kind(path, "\n".join(lines).encode()):
        case "tsv":
            return {"kind": "tsv", "path": str(path), **name}
        case "csv":
            columns = next(csv.reader(lines), [])
            chosen = _choose_names(path, "columns", columns, source, target)
            return {"kind": "csv", "path": str(path), **_names(chosen), **name}
        case "jsonl":
            chosen = _choose_names(path, "keys", _text_keys(path, lines), source, target)
            return {"kind": "jsonl", "path": str(path), **_names(chosen), **name}
        case _:
            raise DataError(
                f"{path}: is not a file of pairs: its lines contain no tab, and it is neither CSV "
                "nor JSONL. Give a file with source<TAB>target in each line, or two files with "
                "sources and targets."
            )


def _check_is_text(path: Path) -> None:
    if not path.is_file():
        problem = "is a folder, not a file" if path.is_dir() else "no such file"
        raise NotFoundError(f"{path}: {problem}. Give a file of pairs, or two parallel files.")
    kind = recognise(path)
    if kind is not None:
        raise DataError(f"{path}: is {kind.name}, not a text file. To use it, {kind.advice}.")


def _sample(path: Path) -> list[str]:
    lines = (line for line in read_lines_or_problems(FilePart(path)) if isinstance(line, str))
    return list(islice(lines, SAMPLE_LINES))


def _text_keys(path: Path, lines: Sequence[str]) -> list[str]:
    """Return the keys of the JSON object in the first line that have a string or a list as value.

    If the key "translation" has an object as value, return the keys of that inner object instead.
    """
    try:
        record = json.loads(lines[0]) if lines else {}
    except ValueError as error:
        raise DataError(
            f"{path}:1: is not JSON: {error}. A JSONL file has one JSON object per line."
        ) from error
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise DataError(f"{path}:1: is not a JSON object. Write one object per line.")
    return [key for key, value in record.items() if isinstance(value, str | list)]


def _choose_names(
    path: Path, what: str, names: Sequence[str], source: str | None, target: str | None
) -> tuple[str, str]:
    """Return the names of the source and the target column (CSV) or key (JSONL).

    The function tries, in this order: the given names, common pairs of names, and all names of the
    file if there are exactly two.

    what:           "columns" or "keys", for the error message
    names:          all columns or keys of the file
    source, target: the given names
    """
    given = [] if source is None or target is None else [(source, target)]
    for pair in (*given, *COMMON_NAMES):
        if set(pair) <= set(names):
            return pair
    if len(names) == 2:
        return names[0], names[1]
    if len(names) < 2:
        found = f"the only one is {names[0]}" if names else "there are none"
        raise DataError(
            f"{path}: needs two {what} with texts, a source and a target, but {found}. Add the "
            f"missing {what}, or give two files, one with the sources and one with the targets."
        )
    raise DataError(
        f"{path}: its {what} are {', '.join(names)}. Say which of them are source and "
        "target: --source NAME --target NAME."
    )


def _names(chosen: tuple[str, str]) -> dict[str, str]:
    return {"source": chosen[0], "target": chosen[1]}


def held_out_fraction(pairs: int) -> float:
    """Return the share of the pairs to hold out for each of the two splits dev and test."""
    if pairs < SMALL_FILE:
        return SMALL_FILE_FRACTION
    return float(f"{min(MAX_FRACTION, HELD_OUT_PAIRS / pairs):.2g}")


def _format(corpus: Mapping[str, Any], pairs: int, preset: str) -> str:
    hold_out = format_value({"kind": "hold-out", "fraction": held_out_fraction(pairs)})
    limits = [f'"{name}": up to {limit:,.0f} pairs' for name, limit in PRESET_LIMITS[:-1]]
    return f"""\
# Print all settings with their descriptions: seqloom config RECIPE

# Tokenizer, model and training. {"; ".join(limits)}; "{PRESET_LIMITS[-1][0]}": more.
preset = "{preset}"

[data]
# Paths start from the folder in which you run seqloom.
train = {format_value(dict(corpus))}
# Pairs that are held out of the training data: dev chooses the best weights during training, test
# is scored by `seqloom evaluate`.
dev = {hold_out}
test = {hold_out}
# Skip and count lines that cannot be used, instead of stopping with a list of them:
# invalid_lines = "skip"

# Remove the # of a table and its settings to change them.
# [training]
# steps = 5000
# stopping = {{ score = "bleu", patience = 5 }}

# [decoding]
# width = 5 # beam width
"""
