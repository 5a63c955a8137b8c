"""Reading Parquet files and data sets saved with `save_to_disk`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import ArrowConfig, ParquetConfig
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.example import Example
from seqloom.data.readers.splits import read_corpus

KINDS: dict[str, type[ParquetConfig | ArrowConfig]] = {
    "parquet": ParquetConfig,
    "arrow": ArrowConfig,
}
every_kind = pytest.mark.parametrize("kind", KINDS)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


def write(path: Path, table: pa.Table, kind: str, group_rows: int = 2) -> None:
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=group_rows)
        return
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=group_rows)


def read(path: Path, kind: str, **settings: Any) -> list[Example]:
    config = KINDS[kind].model_validate({"path": path.name, **settings})
    return list(read_corpus(config, str(path.parent), "train", "data.train"))


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(TEXT, TEXT), max_size=7),
    kind=st.sampled_from(list(KINDS)),
    nested=st.booleans(),
    large=st.booleans(),
)
def test_pairs_are_read_back_as_written(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[str, str]],
    kind: str,
    nested: bool,
    large: bool,
) -> None:
    """In columns or in a column "translation", and in any number of row groups."""
    text = pa.large_string() if large else pa.string()
    fields: Any = [("de", text), ("en", text)]
    rows: list[Any] = [{"de": source, "en": target} for source, target in pairs]
    if nested:
        fields = [("id", pa.int64()), ("translation", pa.struct(fields))]
        rows = [{"id": 1, "translation": row} for row in rows]
    path = tmp_path_factory.mktemp("tables") / "pairs"
    write(path, pa.Table.from_pylist(rows, pa.schema(fields)), kind)
    examples = read(path, kind, source="de", target="en")
    assert [(example.source, example.target) for example in examples] == pairs
    assert [example.where for example in examples] == [
        f"{path}:row {number}" for number in range(1, len(pairs) + 1)
    ]


@every_kind
def test_list_of_targets_gives_references(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "x", pa.table({"source": ["a"], "target": [["b", "c"]]}), kind)
    (example,) = read(tmp_path / "x", kind)
    assert (example.target, example.references) == ("b", ("b", "c"))


@every_kind
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"de": ["a"], "en": ["b"]},
            r"x:row 1: there is no 'source', only 'de', 'en'; set data\.train\.source to the key",
        ),
        ({"source": ["a", "b"], "target": ["c", None]}, r"x:row 2: 'source' must be a string"),
        ({"source": [1], "target": ["c"]}, r"x:row 1: 'source' must be a string .* not 1 and"),
    ],
)
def test_error_names_the_file_and_the_row(
    tmp_path: Path, kind: str, table: dict[str, list[Any]], message: str
) -> None:
    write(tmp_path / "x", pa.table(table), kind)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "x", kind)


@every_kind
@pytest.mark.parametrize("damage", ["empty", "text", "truncated"])
def test_damaged_files_are_errors_with_the_file(tmp_path: Path, kind: str, damage: str) -> None:
    path = tmp_path / "x"
    write(path, pa.table({"source": ["a" * 500] * 9, "target": ["b" * 500] * 9}), kind)
    content = {"empty": b"", "text": b"a\tb\n", "truncated": path.read_bytes()[:1500]}[damage]
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x: is damaged or not an? \w+ .*; copy or download"):
        read(path, kind)


@every_kind
def test_missing_package_is_an_error_with_the_install_command(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "x", pa.table({"source": ["a"], "target": ["b"]}), kind)
    for module in ("pyarrow", "pyarrow.parquet", "pyarrow.ipc"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotFoundError, match=r"pip install 'seqloom\[parquet\]'"):
        read(tmp_path / "x", kind)


def saved_dataset(folder: Path, parts: list[list[str]], **state: Any) -> Path:
    """A folder as `datasets.Dataset.save_to_disk` writes it."""
    folder.mkdir()
    names = [f"data-{n:05}-of-{len(parts):05}.arrow" for n in range(len(parts))]
    for name, texts in zip(names, parts, strict=True):
        write(folder / name, pa.table({"source": texts, "target": texts}), "arrow")
    files = [{"filename": name} for name in names]
    (folder / "state.json").write_text(json.dumps({"_data_files": files, **state}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_folder_of_a_saved_dataset_stands_for_its_files_in_order(tmp_path: Path) -> None:
    folder = saved_dataset(tmp_path / "set", [["a", "b"], ["c"]])
    assert [example.source for example in read(folder, "arrow")] == ["a", "b", "c"]


def test_folder_with_several_splits_is_an_error_that_lists_them(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "dev"]}')
    with pytest.raises(DataError, match=r"several splits \(train, dev\); give the folder of one"):
        read(tmp_path, "arrow")


def test_saved_dataset_with_selected_rows_is_an_error(tmp_path: Path) -> None:
    folder = saved_dataset(tmp_path / "set", [["a"]], _indices_data_files=[{"filename": "i"}])
    with pytest.raises(DataError, match=r"selection of its rows .*flatten_indices"):
        read(folder, "arrow")


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (None, NotFoundError, "is a folder without state.json"),
        ("{", DataError, "is not valid JSON; save the data set again"),
        ("{}", DataError, "does not list the files of the data set"),
        ('{"_data_files": [{"filename": "a.arrow"}]}', NotFoundError, "a.arrow: there is no such"),
    ],
)
def test_incomplete_dataset_folders_are_errors(
    tmp_path: Path, state: str | None, error: type[Exception], message: str
) -> None:
    if state is not None:
        (tmp_path / "state.json").write_text(state)
    with pytest.raises(error, match=message):
        read(tmp_path, "arrow")


SAVE_DATASET = """
import sys
from datasets import Dataset, DatasetDict

columns = {"de": ["eins", "zwei", "drei"], "en": ["one", "two", "three"]}
plain = Dataset.from_dict(columns)
pairs = [{"translation": {"de": de, "en": en}} for de, en in zip(columns["de"], columns["en"])]
DatasetDict({"train": plain, "dev": Dataset.from_list(pairs)}).save_to_disk(sys.argv[1])
plain.save_to_disk(sys.argv[1] + "-sharded", num_shards=2)
plain.select([2, 0]).save_to_disk(sys.argv[1] + "-selected")
"""
"""Writes data sets with the package `datasets`: splits, nested translations, several files, a selection."""


@pytest.mark.long
def test_data_sets_that_the_package_datasets_wrote_are_read(tmp_path: Path) -> None:
    """Installs datasets in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    python = tmp_path / "environment" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "datasets"], check=True)
    subprocess.run([python, "-c", SAVE_DATASET, tmp_path / "saved"], check=True)
    expected = [("eins", "one"), ("zwei", "two"), ("drei", "three")]
    for path in ("saved/train", "saved/dev", "saved-sharded"):
        examples = read(tmp_path / path, "arrow", source="de", target="en")
        assert [(each.source, each.target) for each in examples] == expected
    selected = read(tmp_path / "saved-selected", "arrow", source="de", target="en")
    assert [each.source for each in selected] == ["drei", "eins"]
