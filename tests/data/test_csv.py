"""Columns with names: what is read, and what is refused with its line."""

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import CsvConfig
from seqloom.core.errors import DataError
from seqloom.data.csv import read_csv
from seqloom.data.example import Example

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=9)


def read(path: Path, **names: str) -> list[Example]:
    config = CsvConfig.model_validate({"path": path.name, **names})
    return list(read_csv(config, str(path.parent), "data.train"))


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=5), zipped=st.booleans())
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], zipped: bool
) -> None:
    """Commas, quotes and line ends inside a field too, zipped or not."""
    path = tmp_path_factory.mktemp("csv") / "pairs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("source", "target"), *rows])
    if zipped:
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert [(one.source, one.target) for one in read(path)] == rows


def test_columns_are_chosen_by_name_and_a_record_is_named_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,ref,mr,more\n1,"a\nb",x,y\n2,c,"p, q",""\n', encoding="utf-8")
    config = CsvConfig(path="a.csv", source="mr", target="ref", references=("more",))
    assert list(read_csv(config, str(tmp_path), "data.train")) == [
        Example("x", "a\nb", ("a\nb", "y"), f"{path}:2"),
        Example("p, q", "c", ("c", ""), f"{path}:4"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r":1: there is no column 'source', only an empty line; .* data\.train\.source "),
        ("mr,target\n", r":1: there is no column 'source', only 'mr', 'target'"),
        ("source,ref\n", r":1: there is no column 'target', .* data\.train\.target which"),
        ("source,target,source\n", r":1: there are 2 columns 'source'; rename all but one"),
        ("source,target\na,b\nc\n", r":3: there are 2 columns, but one field here, .* 'c'"),
        ("source,target\na,b,c\n", r":2: there are 2 columns, but 3 fields here"),
        ("source,target\na,b\n\n", r":3: is a blank line; remove it"),
        ('source,target\na,b\n"c,d\n', r":3: the quotes are not in order \(unexpected end"),
        ('source,target\n"a"b,c\n', r":2: the quotes are not in order .* written twice"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=f"bad.csv{message}"):
        read(path)


def test_all_missing_columns_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "a.csv")
    assert len(str(caught.value).splitlines()) == 2
