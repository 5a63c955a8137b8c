"""Lines of a text file, in constant memory, or an error that names the line."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from seqloom.core.errors import DataError, NotFoundError

MAX_BYTES = 1_000_000
"""Without its end. A longer line is no sentence: most likely there are no line ends, or no text."""
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

    What `decoded_lines` refuses is an error here too.
    """
    number = 0
    try:
        with _open(path) as file:
            for line in decoded_lines(file, str(path)):
                number += 1
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}:{number + 1}: the gzip data is damaged or ends too early ({error}); "
            "copy or download the file again"
        ) from error
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error


def decoded_lines(file: BinaryIO, name: str) -> Iterator[str]:
    """Lines of UTF-8, as long as MAX_BYTES each, without their ends; errors say name:line.

    Lines end at \\n alone; one \\r before it goes too. A byte order mark at the start is dropped.
    Invalid UTF-8, NUL bytes and longer lines are errors.
    """
    number = 0
    # Room for what does not count: the line's end and the byte order mark.
    while raw := file.readline(MAX_BYTES + 2 + len(BYTE_ORDER_MARK)):
        number += 1
        yield _decode(raw, name, number)


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        zipped = file.read(2) == GZIP_MAGIC
    return cast(BinaryIO, gzip.open(path, "rb")) if zipped else path.open("rb")


def _decode(raw: bytes, name: str, number: int) -> str:
    if number == 1:
        raw = raw.removeprefix(BYTE_ORDER_MARK)
    line = raw.removesuffix(b"\n").removesuffix(b"\r")
    if len(line) > MAX_BYTES:
        raise DataError(
            f"{name}:{number}: the line is longer than {MAX_BYTES:,} bytes; "
            "split it, if this is text with one sentence a line"
        )
    if b"\0" in line:
        raise DataError(
            f"{name}:{number}: there is a NUL byte, so this is no UTF-8 text; "
            "convert it, for example with: iconv -f UTF-16 -t UTF-8"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}:{number}: byte {error.start + 1} of the line (0x{line[error.start]:02x}) is "
            "not valid UTF-8; convert it, for example with: iconv -f LATIN1 -t UTF-8"
        ) from error
