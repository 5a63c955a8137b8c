"""Recipes for data files: every format is detected, and the recipe reads all pairs."""

import gzip
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import parse_toml
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.data.new_recipe import detect_corpus, held_out_fraction, new_recipe
from seqloom.data.readers.splits import read_split

PAIRS = [(f"source {n}", f"target {n}") for n in range(300)]
FORMATS: dict[str, tuple[dict[str, str], str]] = {
    "tsv": ({"pairs.tsv": "\n".join("\t".join(pair) for pair in PAIRS)}, "tsv"),
    "tabs": ({"pairs.txt": "\n".join("\t".join(pair) for pair in PAIRS)}, "tsv"),
    "csv": ({"pairs.csv": "question,answer\n" + "\n".join(map(",".join, PAIRS))}, "csv"),
    "jsonl": (
        {"pairs.jsonl": "\n".join(json.dumps({"input": s, "output": t}) for s, t in PAIRS)},
        "jsonl",
    ),
    "nested jsonl": (
        {
            "pairs.json": "\n".join(
                json.dumps({"id": "1", "translation": {"de": s, "en": t}}) for s, t in PAIRS
            )
        },
        "jsonl",
    ),
    "parallel": (
        {"all.de": "\n".join(s for s, _ in PAIRS), "all.en": "\n".join(t for _, t in PAIRS)},
        "parallel",
    ),
}
"""Files with PAIRS by the name of their format, and the kind of corpus that reads them."""


def write_files(folder: Path, files: dict[str, str], packed: bool = False) -> list[Path]:
    paths = []
    for name, text in files.items():
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        paths.append(path)
    return paths


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_the_recipe_of_every_format_reads_all_pairs(
    name: str, packed: bool, tmp_path: Path
) -> None:
    files, kind = FORMATS[name]
    recipe = new_recipe(write_files(tmp_path, files, packed), None, None)
    assert (recipe.corpus["kind"], recipe.pairs) == (kind, len(PAIRS))
    data = load_recipe(parse_toml(recipe.text.encode())).config.data
    splits = {split: list(read_split(data, split)) for split in ("train", "dev", "test")}
    read = [(each.source, each.target) for examples in splits.values() for each in examples]
    assert sorted(read) == sorted(PAIRS)
    assert all(splits.values())


@pytest.mark.parametrize("name", FORMATS)
def test_languages_become_the_name_of_the_corpus(name: str, tmp_path: Path) -> None:
    corpus = detect_corpus(write_files(tmp_path, FORMATS[name][0]), "de", "en")
    assert corpus["name"] == "de-en"


def test_the_commented_settings_of_the_recipe_are_valid(tmp_path: Path) -> None:
    text = new_recipe(write_files(tmp_path, FORMATS["tsv"][0]), "de", "en").text
    active = re.sub(r"^# (?=\[\w+\]$|\w+ = )", "", text, flags=re.M)
    assert active != text
    config = load_recipe(parse_toml(active.encode())).config
    assert config.data.invalid_lines == "skip"
    assert config.decoding.kind == "beam"


@pytest.mark.parametrize(
    ("record", "names"),
    [
        ({"a": "x", "b": "y", "id": 3}, ("a", "b")),
        ({"x": "1", "source": "2", "target": "3"}, ("source", "target")),
        ({"x": "1", "de": "2", "en": ["3"]}, ("de", "en")),
    ],
)
def test_keys_are_chosen_by_option_by_usual_name_or_by_being_the_only_two(
    record: dict[str, Any], names: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(record) + "\n")
    corpus = detect_corpus([path], *(names if "de" in names else (None, None)))
    assert (corpus["source"], corpus["target"]) == names


def test_unclear_keys_and_columns_are_listed_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": "x", "b": "y", "c": "z"}\n')
    (tmp_path / "a.csv").write_text("a,b,c\nx,y,z\n")
    with pytest.raises(DataError, match=r"its keys are a, b, c\. .* --source NAME --target NAME"):
        detect_corpus([tmp_path / "a.jsonl"], None, None)
    with pytest.raises(DataError, match=r"its columns are a, b, c\."):
        detect_corpus([tmp_path / "a.csv"], "x", "y")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": "x"}', "needs two keys with texts, a source and a target, but the only one is a"),
        ('{"a": 1}', "needs two keys with texts, a source and a target, but there are none"),
    ],
)
def test_a_file_with_fewer_than_two_keys_is_reported(
    content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(f"{content}\n")
    with pytest.raises(DataError, match=f"{message}.* or give two files"):
        detect_corpus([tmp_path / "a.jsonl"], None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("one sentence\nper line\n", "is not a file of pairs: its lines contain no tab"),
        ("", "is not a file of pairs"),
    ],
)
def test_a_file_without_pairs_is_an_error(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        new_recipe([tmp_path / "a.txt"], None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "is not a JSON object"),
        ("{", "is not JSON"),
    ],
)
def test_a_file_that_is_not_jsonl_is_an_error(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(DataError, match=message):
        detect_corpus([tmp_path / "a.jsonl"], None, None)


def test_a_file_without_usable_pairs_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("no tab\n")
    with pytest.raises(DataError, match="there is no example"):
        new_recipe([tmp_path / "a.tsv"], None, None)


def test_missing_files_archives_and_too_many_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"a\.tsv: no such file"):
        detect_corpus([tmp_path / "a.tsv"], None, None)
    with pytest.raises(NotFoundError, match="is a folder, not a file"):
        detect_corpus([tmp_path], None, None)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.tsv", "x\ty\n")
    with pytest.raises(
        DataError, match=r"is a zip archive with 1 file, not a text file\. .*unpack"
    ):
        detect_corpus([tmp_path / "a.zip"], None, None)
    with pytest.raises(ConfigError, match="3 files given"):
        detect_corpus([tmp_path] * 3, None, None)


@given(st.integers(1, 10**8))
def test_most_pairs_stay_in_the_training_split(pairs: int) -> None:
    fraction = held_out_fraction(pairs)
    assert 0 < fraction <= 0.2
    assert pairs < 200 or 2 * fraction <= 0.1
    assert fraction * pairs <= 1_100
