"""Lines of a text file, in constant memory, or an error that names the line."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from seqloom.core.errors import DataError, NotFoundError

MAX_BYTES = 1_000_000
"""A longer line is no sentence: most likely the file has no line ends, or is no text."""
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def locate(name: str, folder: str) -> Path:
    """The file that a recipe calls `name`, which must be there. `folder` is data.folder."""
    path = Path(folder).expanduser() / Path(name).expanduser()
    if path.is_file():
        return path
    what = "is a folder, not a file" if path.is_dir() else "there is no such file"
    hint = ""
    if not Path(name).expanduser().is_absolute():
        hint = (
            f" ('{name}' was looked for in data.folder = '{folder}', which is "
            f"{Path(folder).expanduser().absolute()}; to look elsewhere: --set data.folder=…)"
        )
    raise NotFoundError(f"{path.absolute()}: {what}{hint}")


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or gzip (told by its first bytes), without their ends.

    Lines end at \\n alone; one \\r before it goes too. A byte order mark at the start is dropped.
    Invalid UTF-8, NUL bytes and lines above MAX_BYTES are errors that say file:line.
    """
    number = 0
    try:
        with _open(path) as file:
            while raw := file.readline(MAX_BYTES + 1):
                number += 1
                yield _decode(raw, path, number)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}:{number + 1}: the gzip data is damaged or ends too early ({error}); "
            "copy or download the file again"
        ) from error
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        zipped = file.read(2) == GZIP_MAGIC
    return cast(BinaryIO, gzip.open(path, "rb")) if zipped else path.open("rb")


def _decode(raw: bytes, path: Path, number: int) -> str:
    if number == 1:
        raw = raw.removeprefix(BYTE_ORDER_MARK)
    line = raw.removesuffix(b"\n").removesuffix(b"\r")
    if len(line) > MAX_BYTES:
        raise DataError(
            f"{path}:{number}: the line is longer than {MAX_BYTES:,} bytes; "
            "is this a text file with one sentence a line?"
        )
    if b"\0" in line:
        raise DataError(
            f"{path}:{number}: there is a NUL byte, so this is no UTF-8 text; "
            "convert the file, for example with: iconv -f UTF-16 -t UTF-8"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: byte {error.start + 1} of the line (0x{line[error.start]:02x}) is "
            "not valid UTF-8; convert the file, for example with: iconv -f LATIN1 -t UTF-8"
        ) from error
