"""Sequences of vectors with labels: the CSV reader, the text form and the store."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import FramesConfig
from seqloom.core.errors import DataError, StorageError
from seqloom.data.modalities.frames import (
    FrameModality,
    format_frames,
    pad_frames,
    parse_frames,
    read_frame_sequences,
)
from seqloom.data.modalities.series import Scale, read_table
from seqloom.data.readers.splits import read_corpus

ROWS = "sequence,label,x1,x2\na,up,1,2\na,down,3,4.5\nb,up,-1,0\n"


def write(folder: Path, text: str) -> str:
    (folder / "frames.csv").write_text(text, encoding="utf-8")
    return str(folder)


def test_each_sequence_is_an_example_with_one_label_per_frame(tmp_path: Path) -> None:
    examples = list(
        read_corpus(FramesConfig(path="frames.csv"), write(tmp_path, ROWS), "train", "data.train")
    )
    assert [(e.source, e.target) for e in examples] == [("1,2 3,4.5", "up down"), ("-1,0", "up")]
    assert [e.where.rpartition(":")[2] for e in examples] == ["2", "4"]


def test_columns_can_be_chosen_and_renamed(tmp_path: Path) -> None:
    text = "id,time,gesture,x,y\n7,0,up,1,2\n7,1,up,3,4\n"
    config = FramesConfig(
        path="frames.csv", sequence="id", label="gesture", columns=("y",), labels="sequence"
    )
    [example] = read_corpus(config, write(tmp_path, text), "train", "data.train")
    assert (example.source, example.target) == ("2 4", "up")


@pytest.mark.parametrize(
    "header",
    ['"sequence","label","x1","x2"', '"sequence", "label", "x1", "x2"', 'sequence,label,"x,1",x2'],
)
def test_column_names_can_be_quoted(header: str, tmp_path: Path) -> None:
    write(tmp_path, ROWS.replace("sequence,label,x1,x2", header))
    examples = list(
        read_corpus(FramesConfig(path="frames.csv"), str(tmp_path), "train", "data.train")
    )
    assert [(e.source, e.target) for e in examples] == [("1,2 3,4.5", "up down"), ("-1,0", "up")]


def test_a_series_with_quoted_column_names_is_read(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text('"a", "b"\n"1", "2"\n3,4\n', encoding="utf-8")
    assert read_table(path, ["b"], ["a"]).values.tolist() == [[2], [4]]


def test_a_file_without_labels_can_be_labelled(tmp_path: Path) -> None:
    write(tmp_path, "sequence,x1\na,1\na,2\n")
    config = FramesConfig(path="frames.csv")
    [found] = read_frame_sequences(tmp_path / "frames.csv", config, with_labels=False)
    assert (found.name, found.text) == ("a", "1 2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sequence,x1\na,1\n",
            r"frames.csv:1: there is no column label; the columns are sequence, x1\. Correct",
        ),
        ("", r"frames.csv:1: the file has no columns; name the columns in its first line"),
        ("\n", r"frames.csv:1: the file has no columns; name the columns in its first line"),
        (
            ROWS.replace("x2", '"x2') + "a,up,1,1\n" * 20_000,
            r"frames.csv:\d+: the quotes are not valid CSV \(field larger .*; close each quote",
        ),
        ("sequence,label\na,up\n", r"frames.csv:1: there is no column of numbers beside sequence"),
        (ROWS + "a,up,1,1\n", r"frames.csv:5: the rows of sequence 'a' do not follow each other"),
        (ROWS.replace("4.5", "much"), r"frames.csv:3: column x2: 'much' is not a number"),
        (ROWS.replace("4.5", "nan"), r"frames.csv:3: column x2: 'nan' is not finite"),
        (ROWS.replace("down", "go down"), r"the label 'go down' must be one word; join words by _"),
        (ROWS.replace("down", ""), r"the label '' must be one word; .*give every row a label"),
        (ROWS + "b,up,1\n", r"frames.csv:5: the row has 3 cells"),
    ],
)
def test_wrong_rows_are_an_error_with_their_position(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        list(
            read_corpus(
                FramesConfig(path="frames.csv"), write(tmp_path, text), "train", "data.train"
            )
        )


def test_a_label_for_the_whole_sequence_must_be_the_same_in_all_rows(tmp_path: Path) -> None:
    config = FramesConfig(path="frames.csv", labels="sequence")
    with pytest.raises(DataError, match=r"sequence a has the labels down, up, .*labels = 'frame'"):
        list(read_corpus(config, write(tmp_path, ROWS), "train", "data.train"))


def test_a_column_cannot_have_two_uses() -> None:
    with pytest.raises(ValidationError, match="label: each column can be used only once"):
        FramesConfig(path="frames.csv", columns=("x1", "label"))


Rows = st.lists(
    st.tuples(*[st.floats(-1e6, 1e6, allow_nan=False, width=32)] * 2), min_size=1, max_size=6
)


@given(Rows)
def test_frames_survive_being_written_as_text(rows: list[tuple[float, float]]) -> None:
    np.testing.assert_allclose(parse_frames(format_frames(rows)), rows, rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2 3,x", r"frame 2, '3,x', is not a list of numbers"),
        ("1,2 3", r"frame 2, '3', has 1 numbers, but frame 1 has 2"),
        ("1,inf", r"frame 1, '1,inf', contains a number that is not finite"),
    ],
)
def test_wrong_frames_are_an_error_with_their_position(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_frames(text)


def load_frames(folder: Path) -> FrameModality:
    return FrameModality.load(load_recipe("frames-label").config, folder)


def test_training_frames_have_mean_0_and_deviation_1_after_scaling(tmp_path: Path) -> None:
    texts = ["1,5 3,5", "2,5"]
    scale = FrameModality.of(texts)
    frames = np.concatenate([scale.encode(text) for text in texts])
    np.testing.assert_allclose(frames.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(frames.std(0), [1, 0], atol=1e-6)  # a constant column stays constant
    scale.save(tmp_path)
    np.testing.assert_array_equal(load_frames(tmp_path).deviation, scale.deviation)
    with pytest.raises(DataError, match=r"a frame has 1 numbers, but the model reads 2 per frame"):
        scale.encode("1 2")
    with pytest.raises(DataError, match=r"there are frames of 1 and 2 numbers"):
        FrameModality.of(["1,2", "1"])


@pytest.mark.parametrize("load", [load_frames, Scale.load])
@pytest.mark.parametrize("content", [None, "{", "{}", "[]", '{"mean": [1]}', "[" * 100_000])
def test_the_error_about_a_damaged_scale_says_what_to_do(
    tmp_path: Path, content: str | None, load: Callable[[Path], object]
) -> None:
    if content is not None:
        (tmp_path / "scale.json").write_text(content)
    with pytest.raises(StorageError, match=r"scale\.json: cannot be read: .*Restore .* backup"):
        load(tmp_path)


def test_a_zero_vector_takes_the_place_of_end() -> None:
    rows = [np.ones((2, 3), dtype=np.float32), np.ones((1, 3), dtype=np.float32)]
    padded = pad_frames(rows)
    assert padded.lengths.tolist() == [3, 2]
    assert padded.values.sum(-1).tolist() == [[3, 3, 0], [3, 0, 0]]
