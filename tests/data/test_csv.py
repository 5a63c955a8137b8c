"""Reading CSV files: columns by name, quoting, and errors with their line."""

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import CsvConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.readers.splits import read_corpus

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=9)


def read(path: Path, **names: str) -> list[Example]:
    config = CsvConfig.model_validate({"path": path.name, **names})
    return list(read_corpus(config, str(path.parent), "train", "data.train"))


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=5), compressed=st.booleans())
def test_records_are_read_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], compressed: bool
) -> None:
    """Fields may contain commas, quotes and line breaks; the file may be compressed."""
    path = tmp_path_factory.mktemp("csv") / "pairs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("source", "target"), *rows])
    if compressed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert [(example.source, example.target) for example in read(path)] == rows


def test_columns_are_selected_by_name_and_examples_name_their_first_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,ref,mr,more\n1,"a\nb",x,y\n2,c,"p, q",""\n', encoding="utf-8")
    config = CsvConfig(path="a.csv", source="mr", target="ref", references=("more",))
    assert list(read_corpus(config, str(tmp_path), "train", "data.train")) == [
        Example("x", "a\nb", ("a\nb", "y"), f"{path}:2"),
        Example("p, q", "c", ("c", ""), f"{path}:4"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r":1: there is no column 'source', only an empty line; .* data\.train\.source "),
        ("mr,target\n", r":1: there is no column 'source', only 'mr', 'target'"),
        ("source,ref\n", r":1: there is no column 'target', .* set data\.train\.target to"),
        ("source,target,source\n", r":1: there are 2 columns 'source'; rename all but one"),
        ("source,target\na,b\nc\n", r":3: there are 2 columns, but .* one field, .* 'c'"),
        ("source,target\na,b,c\n", r":2: there are 2 columns, but this record has 3 fields"),
        ("source,target\na,b\n\n", r":3: the line is blank; remove blank lines"),
        ('source,target\na,b\n"c,d\n', r":3: the quotes are not valid CSV \(unexpected end"),
        (
            'source,target\n"a"b,c\n',
            r":2: the quotes are not valid CSV .* double each quote inside it",
        ),
    ],
)
def test_error_names_the_file_and_the_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=f"bad.csv{message}"):
        read(path)


def test_error_names_all_missing_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n", encoding="utf-8")
    with pytest.raises(DataError) as info:
        read(tmp_path / "a.csv")
    assert len(str(info.value).splitlines()) == 2
