"""Reading plain text: one sentence per line, or a section of a long text."""

import gzip
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import LinesConfig, LongTextConfig
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import DataError
from seqloom.data.readers.splits import read_corpus, read_split


def test_lines_have_no_source_and_blank_lines_are_examples(tmp_path: Path) -> None:
    (tmp_path / "txt").write_text("one\n\nthree\n")
    examples = list(read_corpus(LinesConfig(path="txt"), str(tmp_path), "train", "data.train"))
    assert [(e.source, e.target) for e in examples] == [("", "one"), ("", ""), ("", "three")]
    assert examples[2].where == f"{tmp_path}/txt:3"


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=30),
    st.lists(st.floats(0, 1), max_size=3).map(sorted),
)
def test_adjacent_sections_share_no_line_and_lose_none(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], cuts: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("text")
    lines = [f"{number:02d}{'é' * length}\n" for number, length in enumerate(lengths)]
    (folder / "text").write_text("".join(lines), encoding="utf-8")
    read = []
    for begin, end in itertools.pairwise([0.0, *cuts, 1.0]):
        if begin < end:
            section = LongTextConfig(path="text", begin=begin, end=end)
            read += [
                example.target
                for example in read_corpus(section, str(folder), "train", "data.train")
            ]
    assert read == lines


def test_section_is_a_fraction_of_characters_not_of_lines(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "text.gz", "wt", encoding="utf-8") as file:
        file.write("a\n" * 40 + "b" * 19 + "\n")  # 100 characters, line endings included
    section = LongTextConfig(path="text.gz", end=0.5)
    assert len(list(read_corpus(section, str(tmp_path), "train", "data.train"))) == 25


def test_section_without_a_line_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("one line alone", encoding="utf-8")
    train, dev = (LongTextConfig(path="text", begin=begin) for begin in (0.0, 0.5))
    data = DataConfig(folder=str(tmp_path), train=(train,), dev=(dev,))
    assert [example.target for example in read_split(data, "train")] == ["one line alone\n"]
    with pytest.raises(DataError, match=r"data.dev: text: there is no example"):
        list(read_split(data, "dev"))
