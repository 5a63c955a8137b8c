"""Reading lines of text files: encodings, line endings, gzip, and errors with their line."""

import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.readers.text_files import MAX_BYTES, locate, read_lines

plain_lines = st.lists(
    st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])).filter(
        lambda line: not line.startswith("\ufeff")
    )
)


def write(folder: Path, content: bytes, name: str = "text") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@given(lines=plain_lines, compressed=st.booleans(), end=st.sampled_from(["\n", "\r\n"]))
def test_lines_are_read_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], compressed: bool, end: str
) -> None:
    content = "".join(line + end for line in lines).encode()
    folder = tmp_path_factory.mktemp("lines")
    path = write(folder, gzip.compress(content) if compressed else content)
    assert list(read_lines(path)) == lines


def test_only_newline_ends_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\u0085c\x0bd\x0ce\rf"
    assert list(read_lines(write(tmp_path, f"{text}\nlast".encode()))) == [text, "last"]


def test_byte_order_mark_is_removed_only_at_the_start(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeffone\n\ufefftwo\n".encode())
    assert list(read_lines(path)) == ["one", "\ufefftwo"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"caf\xe9", r"text:2: byte 4 of the line \(0xe9\) is not valid UTF-8; convert it"),
        (b"a\0b", r"text:2: the line contains a NUL byte"),
        (b"x" * (MAX_BYTES + 1), r"text:2: the line is longer than 1,000,000 bytes; split"),
    ],
    ids=["latin1", "nul", "long"],
)
def test_invalid_line_is_named_in_the_error(tmp_path: Path, bad: bytes, message: str) -> None:
    path = write(tmp_path, b"fine\n" + bad + b"\nfine\n")
    with pytest.raises(DataError, match=message):
        list(read_lines(path))


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_line_of_maximum_length_is_read(tmp_path: Path, start: bytes, end: bytes) -> None:
    path = write(tmp_path, start + b"x" * MAX_BYTES + end)
    assert [len(line) for line in read_lines(path)] == [MAX_BYTES]
    path = write(tmp_path, start + b"x" * (MAX_BYTES + 1) + end)
    with pytest.raises(DataError, match="longer than"):
        list(read_lines(path))


def test_gzip_bomb_of_one_line_is_not_expanded_in_memory(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"x" * 100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="longer than"):
            list(read_lines(path))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_damaged_gzip_data_is_an_error_with_a_line(tmp_path: Path, damage: str) -> None:
    content = bytearray(gzip.compress("".join(f"line {n}\n" for n in range(9_000)).encode()))
    if damage == "truncated":
        del content[len(content) // 2 :]
    else:
        content[len(content) // 2] ^= 255
    path = write(tmp_path, bytes(content), "text.gz")
    with pytest.raises(
        DataError, match=r"text\.gz:\d+: the gzip data is damaged or ends too early"
    ):
        list(read_lines(path))


def test_error_for_missing_file_names_its_path_and_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError) as info:
        locate("train.de", "corpora")
    message = str(info.value)
    assert message.startswith(f"{tmp_path}/corpora/train.de: there is no such file")
    assert "data.folder = 'corpora'" in message
    assert "--set data.folder=" in message


def test_folder_is_not_accepted_as_a_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"is a folder, not a file$"):
        locate(str(tmp_path), ".")
