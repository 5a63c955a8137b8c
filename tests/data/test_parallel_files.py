"""Reading parallel files: line by line, with equal line counts."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from seqloom.config.schema.corpora import ParallelConfig
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.example import Example
from seqloom.data.preparation.request import fingerprint
from seqloom.data.readers.splits import read_corpus


def write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")


def test_line_n_of_all_files_forms_one_example(tmp_path: Path) -> None:
    write(tmp_path, de="eins\nzwei\n", en="one\ntwo\n", more="1\n2\n")
    config = ParallelConfig(source="de", target="en", references=("more",))
    assert list(read_corpus(config, str(tmp_path), "train", "data.dev")) == [
        Example("eins", "one", ("one", "1"), f"{tmp_path}/de:1"),
        Example("zwei", "two", ("two", "2"), f"{tmp_path}/de:2"),
    ]


@pytest.mark.parametrize(("german", "english"), [(3, 5), (5, 3), (0, 2)])
def test_unequal_line_counts_are_an_error_that_names_counts_and_first_unpaired_line(
    tmp_path: Path, german: int, english: int
) -> None:
    write(tmp_path, de="x\n" * german, en="y\n" * english)
    longer = "de" if german > english else "en"
    with pytest.raises(DataError) as info:
        list(
            read_corpus(
                ParallelConfig(source="de", target="en"), str(tmp_path), "train", "data.dev"
            )
        )
    message = str(info.value)
    assert f"{tmp_path}/de has {german} lines, {tmp_path}/en has {english} lines" in message
    assert f"line {min(german, english) + 1} of {tmp_path}/{longer} has no partner" in message


def test_error_names_all_missing_files(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as info:
        list(
            read_corpus(
                ParallelConfig(source="de", target="en"), str(tmp_path), "train", "data.dev"
            )
        )
    assert f"{tmp_path}/de: there is no such file" in str(info.value)
    assert f"{tmp_path}/en: there is no such file" in str(info.value)


def test_first_line_and_last_line_select_a_range(tmp_path: Path) -> None:
    write(tmp_path, de="1\n2\n3\n4\n5\n", en="a\nb\nc\nd\ne\n")

    def read(**lines: int) -> list[tuple[str, str]]:
        config = ParallelConfig(source="de", target="en", **lines)
        return [
            (e.target, e.where) for e in read_corpus(config, str(tmp_path), "train", "data.dev")
        ]

    assert read(first_line=2, last_line=3) == [
        ("b", f"{tmp_path}/de:2"),
        ("c", f"{tmp_path}/de:3"),
    ]
    everything = read()
    for cut in range(1, 5):  # adjacent ranges cover the file
        assert read(last_line=cut) + read(first_line=cut + 1) == everything


def test_range_past_the_end_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, de="1\n2\n3\n", en="a\nb\nc\n", short="a\nb\n")
    for lines in ({"first_line": 4}, {"last_line": 4}):
        ((name, _),) = lines.items()
        config = ParallelConfig(source="de", target="en", **lines)
        message = rf"de: has 3 lines, so data\.dev\.{name} = 4 is past the end; .* 3 or less"
        with pytest.raises(DataError, match=message):
            list(read_corpus(config, str(tmp_path), "train", "data.dev"))
    with pytest.raises(ValidationError, match=r"first_line .*3.* last_line .*2"):
        ParallelConfig(source="de", target="en", first_line=3, last_line=2)


def test_unequal_line_counts_are_detected_outside_the_range(tmp_path: Path) -> None:
    write(tmp_path, de="1\n2\n3\n", short="a\nb\n")
    config = ParallelConfig(source="de", target="short", last_line=1)
    with pytest.raises(DataError, match=r"line 3 of .* has no partner"):
        list(read_corpus(config, str(tmp_path), "train", "data.dev"))


def test_fingerprint_depends_on_the_range(tmp_path: Path) -> None:
    write(tmp_path, de="1\n2\n3\n", en="a\nb\nc\n")

    def digest(**lines: int) -> str:
        corpus = ParallelConfig(source="de", target="en", **lines)
        return fingerprint(DataConfig(folder=str(tmp_path), train=(corpus,)), "train")

    digests = [digest(), digest(last_line=2), digest(first_line=2), digest(first_line=3)]
    assert len(set(digests)) == len(digests)
