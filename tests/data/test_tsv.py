"""Reading TSV files: columns by number, and errors with their line."""

from pathlib import Path

import pytest

from seqloom.config.schema.corpora import TsvConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.readers.splits import read_corpus


def test_columns_are_selected_by_number(tmp_path: Path) -> None:
    (tmp_path / "tsv").write_text("one\teins\tuno\textra\n")
    config = TsvConfig(path="tsv", source_column=1, target_column=0, reference_columns=(2,))
    assert list(read_corpus(config, str(tmp_path), "train", "data.train")) == [
        Example("eins", "one", ("one", "uno"), f"{tmp_path}/tsv:1")
    ]


def test_error_names_the_missing_column_and_the_line(tmp_path: Path) -> None:
    (tmp_path / "tsv").write_text("one\teins\nonly this\n")
    (tmp_path / "blank").write_text("one\teins\n\n")
    message = (
        r"tsv:2: there is no second column, only one column in 'only this'; .* data\.dev\.target_"
    )
    with pytest.raises(DataError, match=message):
        list(read_corpus(TsvConfig(path="tsv"), str(tmp_path), "train", "data.dev"))
    with pytest.raises(DataError, match=r"tsv:1: .* no third column, only 2 columns in"):
        list(
            read_corpus(TsvConfig(path="tsv", target_column=2), str(tmp_path), "train", "data.dev")
        )
    with pytest.raises(DataError, match=r"blank:2: the line is blank and has no second column"):
        list(read_corpus(TsvConfig(path="blank"), str(tmp_path), "train", "data.dev"))
    with pytest.raises(DataError, match=r"no 12th column"):
        list(
            read_corpus(TsvConfig(path="tsv", target_column=11), str(tmp_path), "train", "data.dev")
        )
