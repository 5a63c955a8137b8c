import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.files import MAX_BYTES, locate, read_lines

plain_lines = st.lists(
    st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])).filter(
        lambda line: not line.startswith("\ufeff")
    )
)


def written(folder: Path, content: bytes, name: str = "text") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@given(lines=plain_lines, zipped=st.booleans(), end=st.sampled_from(["\n", "\r\n"]))
def test_every_line_comes_back(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], zipped: bool, end: str
) -> None:
    content = "".join(line + end for line in lines).encode()
    path = written(tmp_path_factory.mktemp("lines"), gzip.compress(content) if zipped else content)
    assert list(read_lines(path)) == lines


def test_lines_end_at_the_newline_and_nowhere_else(tmp_path: Path) -> None:
    text = "a\u2028b\u0085c\x0bd\x0ce\rf"
    assert list(read_lines(written(tmp_path, f"{text}\nlast".encode()))) == [text, "last"]


def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffone\n\ufefftwo\n".encode())
    assert list(read_lines(path)) == ["one", "\ufefftwo"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"caf\xe9", r"text:2: byte 4 of the line \(0xe9\) is not valid UTF-8; convert it"),
        (b"a\0b", r"text:2: there is a NUL byte"),
        (b"x" * (MAX_BYTES + 1), r"text:2: the line is longer than 1,000,000 bytes; split it"),
    ],
    ids=["latin1", "nul", "long"],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: bytes, message: str) -> None:
    path = written(tmp_path, b"fine\n" + bad + b"\nfine\n")
    with pytest.raises(DataError, match=message):
        list(read_lines(path))


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_the_longest_line_allowed_is_read(tmp_path: Path, start: bytes, end: bytes) -> None:
    path = written(tmp_path, start + b"x" * MAX_BYTES + end)
    assert [len(line) for line in read_lines(path)] == [MAX_BYTES]
    path = written(tmp_path, start + b"x" * (MAX_BYTES + 1) + end)
    with pytest.raises(DataError, match="longer than"):
        list(read_lines(path))


def test_a_gzip_bomb_in_one_line_is_not_unpacked_into_memory(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(b"x" * 100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="longer than"):
            list(read_lines(path))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("harm", ["cut", "flipped"])
def test_damaged_gzip_data_are_an_error_with_a_line(tmp_path: Path, harm: str) -> None:
    content = bytearray(gzip.compress("".join(f"line {n}\n" for n in range(9_000)).encode()))
    if harm == "cut":
        del content[len(content) // 2 :]
    else:
        content[len(content) // 2] ^= 255
    path = written(tmp_path, bytes(content), "text.gz")
    with pytest.raises(
        DataError, match=r"text\.gz:\d+: the gzip data is damaged or ends too early"
    ):
        list(read_lines(path))


def test_a_missing_file_is_named_in_full_with_the_folder_it_was_looked_for_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError) as info:
        locate("train.de", "corpora")
    message = str(info.value)
    assert message.startswith(f"{tmp_path}/corpora/train.de: there is no such file")
    assert "data.folder = 'corpora'" in message
    assert "--set data.folder=" in message


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"is a folder, not a file$"):
        locate(str(tmp_path), ".")
