"""Reading lines of text files: encodings, line endings, compression, and errors with their line."""

import gzip
import io
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.readers.text_files import MAX_BYTES, count_file_lines, locate, read_lines

plain_lines = st.lists(
    st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])).filter(
        lambda line: not line.startswith("\ufeff")
    )
)


def write(folder: Path, content: bytes, name: str = "text") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    # With a checksum, as the program zstd writes it. Without one, zstd cannot detect all damage.
    "zst": lambda content: zstandard.ZstdCompressor(write_checksum=True).compress(content),
}
every_compression = pytest.mark.parametrize("suffix", COMPRESSIONS)


@given(
    lines=plain_lines,
    suffix=st.sampled_from(["", *COMPRESSIONS]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_lines_are_read_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], suffix: str, end: str
) -> None:
    content = "".join(line + end for line in lines).encode()
    folder = tmp_path_factory.mktemp("lines")
    path = write(folder, COMPRESSIONS.get(suffix, bytes)(content))
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


@every_compression
def test_compressed_bomb_of_one_line_is_not_expanded_in_memory(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path, COMPRESSIONS[suffix](b"x" * 100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="longer than"):
            list(read_lines(path))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@every_compression
@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_damaged_compressed_data_is_an_error_with_a_line(
    suffix: str, tmp_path: Path, damage: str
) -> None:
    text = "".join(f"line {n}\n" for n in range(9_000))
    content = bytearray(COMPRESSIONS[suffix](text.encode()))
    if damage == "truncated":
        del content[len(content) // 2 :]
    else:
        content[len(content) // 2] ^= 255
    path = write(tmp_path, bytes(content), "text.x")
    with pytest.raises(
        DataError, match=r"text\.x:\d+: the (gzip|zstd) data is damaged or ends too early"
    ):
        list(read_lines(path))


def test_all_zstd_frames_of_a_file_are_read(tmp_path: Path) -> None:
    stream = io.BytesIO()
    for number in range(3):
        # Without a size, as the program zstd writes standard input.
        compressor = zstandard.ZstdCompressor(write_content_size=False)
        stream.write(compressor.compress(f"line {number}\n".encode()))
    path = write(tmp_path, stream.getvalue())
    assert list(read_lines(path)) == ["line 0", "line 1", "line 2"]
    assert count_file_lines(path) == 3


def test_zstd_without_its_package_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = write(tmp_path, zstandard.compress(b"x\n"))
    with pytest.raises(NotFoundError, match=r"pip install 'seqloom\[zstd\]'"):
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
