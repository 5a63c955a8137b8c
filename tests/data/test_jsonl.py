"""Reading JSON Lines: object shapes, fallbacks, and errors with their line."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.schema.corpora import JsonlConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.readers.splits import read_corpus


def write(folder: Path, records: Sequence[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "jsonl").write_text(lines, encoding="utf-8")


def test_flat_and_nested_objects_are_read(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"de": "eins", "en": "one"},
        {"translation": {"de": "zwei", "en": "two"}},
        {"de": "drei", "en": ["three", "3"]},
    ]
    write(tmp_path, records)
    config = JsonlConfig(path="jsonl", source="de", target="en")
    assert list(read_corpus(config, str(tmp_path), "train", "data.dev")) == [
        Example("eins", "one", ("one",), f"{tmp_path}/jsonl:1"),
        Example("zwei", "two", ("two",), f"{tmp_path}/jsonl:2"),
        Example("drei", "three", ("three", "3"), f"{tmp_path}/jsonl:3"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"src": "a",', r"is not JSON: .* at character 13 of "),
        ("", r"is not JSON: .* of an empty line"),
        ("[1, 2]", r"must be a JSON object, \{…\}, not \[1, 2\]"),
        ("[" * 99_999, r"nested too deeply"),
        ('{"src": "a"}', r"there is no 'tgt', only 'src'"),
        (
            '{"translation": {"de": "a"}}',
            r"no 'src', only 'translation\.de'; set data\.train\[1\]\.source to the key",
        ),
        ('{"translation": "a"}', r"there is no 'src', only 'translation'"),
        ("{}", r"there is no 'src', only an empty object"),
        ('{"src": 1, "tgt": "b"}', r"'src' must be a string .* not 1 and 'b'"),
        ('{"src": "a", "tgt": [1]}', r"a list of strings, not 'a' and \[1\]"),
        ('{"src": "a", "tgt": []}', r"'tgt' is an empty list"),
        ('{"src": "a", "tgt": "\\ud800"}', r"half of a surrogate pair"),
    ],
)
def test_error_names_the_line_and_its_content(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "jsonl").write_text(f'{{"src": "a", "tgt": "b"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(DataError, match=f"jsonl:2: .*{message}"):
        list(read_corpus(JsonlConfig(path="jsonl"), str(tmp_path), "train", "data.train[1]"))


def test_fallback_key_is_read_if_the_source_is_null_or_missing(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"new": "better", "old": "good", "code": "1"},
        {"new": None, "old": "good", "code": "2"},
        {"old": "good", "code": "3"},
        {"new": "", "old": "good", "code": "4"},
        {"new": None, "code": "5"},
    ]
    write(tmp_path, records)
    config = JsonlConfig(path="jsonl", source="new", source_fallback="old", target="code")
    reader = read_corpus(config, str(tmp_path), "train", "data.dev")
    assert [next(reader).source for _ in range(4)] == ["better", "good", "good", ""]
    with pytest.raises(DataError, match=r"jsonl:5: there is no 'old'.*data\.dev\.source_fallback"):
        next(reader)
    without_fallback = JsonlConfig(path="jsonl", source="new", target="code")
    with pytest.raises(
        DataError, match=r"(?s)jsonl:2: .*not None.*data\.dev\.source_fallback names"
    ):
        list(read_corpus(without_fallback, str(tmp_path), "train", "data.dev"))


def test_source_list_is_joined_if_the_recipe_sets_a_joiner(tmp_path: Path) -> None:
    write(tmp_path, [{"src": ["One.", "Two."], "tgt": ["a", "b"]}, {"src": "x", "tgt": "y"}])
    config = JsonlConfig(path="jsonl", source_joiner=" ")
    examples = list(read_corpus(config, str(tmp_path), "train", "data.dev"))
    assert [example.source for example in examples] == ["One. Two.", "x"]
    assert examples[0].references == ("a", "b")
    with pytest.raises(DataError, match=r"jsonl:1: .*data\.dev\.source_joiner = \" \" joins"):
        list(read_corpus(JsonlConfig(path="jsonl"), str(tmp_path), "train", "data.dev"))
    write(tmp_path, [{"src": ["One.", 2], "tgt": "y"}])
    with pytest.raises(DataError, match=r"jsonl:1: 'src' must be a string"):
        list(read_corpus(config, str(tmp_path), "train", "data.dev"))


def test_every_key_listed_in_an_error_can_be_read(tmp_path: Path) -> None:
    write(tmp_path, [{"id": "7", "translation": {"de": "zwei", "en": "two"}}])
    with pytest.raises(DataError) as info:
        list(read_corpus(JsonlConfig(path="jsonl"), str(tmp_path), "train", "data.train"))
    keys = re.findall(r"'([^']+)'", str(info.value).partition("only")[2])
    assert keys == ["id", "translation.de", "translation.en"]
    for key in keys:
        config = JsonlConfig(path="jsonl", source=key, target=key)
        (example,) = read_corpus(config, str(tmp_path), "train", "data.train")
        assert example.source in ("7", "zwei", "two")
