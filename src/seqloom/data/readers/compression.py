"""Opens files that may be compressed with gzip or zstd.

The first bytes of a file show whether it is compressed, and how. Its name does not matter.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from seqloom.core.extras import import_optional
from seqloom.core.file_kinds import ZSTD_SIGNATURE

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

GZIP_SIGNATURE = b"\x1f\x8b"
GZIP_BLOCK_BYTES = 2**17
"""Number of unpacked bytes that are read from a gzip file at once."""
ZSTD_BLOCK_BYTES = 2**9
"""Number of compressed bytes that are unpacked at once. It limits the memory, because a few bytes
of zstd data can expand to 128 KiB of repetitive text."""


class DamagedFileError(Exception):
    """The compressed data of a file is damaged or ends too early. The message says what to do."""

    def __init__(self, compression: str, problem: object) -> None:
        super().__init__(
            f"the {compression} data is damaged or ends too early ({problem}); copy or download "
            "the file again"
        )


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading. If it is compressed with gzip or zstd, it is unpacked.

    Reading raises a DamagedFileError if the compressed data is damaged.
    """
    start = _first_bytes(path)
    if start.startswith(GZIP_SIGNATURE):
        return cast(BinaryIO, io.BufferedReader(_BlockFile(_gzip_blocks(path))))
    if start == ZSTD_SIGNATURE:
        return cast(BinaryIO, io.BufferedReader(_BlockFile(_zstd_blocks(path))))
    return path.open("rb")


def is_compressed(path: Path) -> bool:
    """Return True if a file is compressed with gzip or zstd."""
    start = _first_bytes(path)
    return start.startswith(GZIP_SIGNATURE) or start == ZSTD_SIGNATURE


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(ZSTD_SIGNATURE))


class _BlockFile(io.RawIOBase):
    """A readable file. Its content comes from an iterator that yields blocks of bytes."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _gzip_blocks(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            while block := file.read1(GZIP_BLOCK_BYTES):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedFileError("gzip", error) from error


def _zstd_blocks(path: Path) -> Iterator[bytes]:
    """Yield the unpacked data of all frames of a zstd file.

    The stream reader of the package `zstandard` does not report a truncated file. Therefore, this
    function decompresses the frames one by one and checks that the last frame is complete.
    """
    zstandard = import_optional("zstandard", "zstd", f"{path}: reading zstd files")
    frame = None
    try:
        with path.open("rb") as file:
            while packed := file.read(ZSTD_BLOCK_BYTES):
                while packed:
                    frame = frame or zstandard.ZstdDecompressor().decompressobj()
                    yield frame.decompress(packed)
                    packed = frame.unused_data
                    if frame.eof:
                        frame = None
    except zstandard.ZstdError as error:
        raise DamagedFileError("zstd", error) from error
    if frame is not None:
        raise DamagedFileError("zstd", "the last frame is not complete")
