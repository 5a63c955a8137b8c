"""Reads lines of text files in constant memory. Errors name the file and the line."""

import glob
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from seqloom.config.schema.corpora import FileNames, list_file_names
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.example import InvalidLine
from seqloom.data.readers.compression import DamagedFileError, open_file

MAX_BYTES = 1_000_000
"""Maximum length of a line in bytes, without its line ending. If a line is longer, the file has
probably no line breaks or is not text."""
BLOCK_BYTES = 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class FilePart:
    """A part of a file that consists of whole lines. Default: the whole file.

    start, stop: the part consists of the bytes start to stop - 1. If `stop` is None, it ends at the
                 end of the file. A compressed file is never divided into parts.
    first_line:  line number of the first line of the part. The file starts with line 1.
    """

    path: Path
    start: int = 0
    stop: int | None = None
    first_line: int = 1


def locate(name: str, folder: str) -> Path:
    """Return the path of a data file. Raise a NotFoundError if it does not exist.

    name:   the path as written in the recipe
    folder: the setting `data.folder`. A relative `name` is relative to this folder.
    """
    path = Path(folder).expanduser() / Path(name).expanduser()
    if path.is_file():
        return path
    problem = "is a folder, not a file" if path.is_dir() else "there is no such file"
    hint = ""
    if not Path(name).expanduser().is_absolute():
        hint = (
            f" ('{name}' is relative to data.folder = '{folder}', which is "
            f"{Path(folder).expanduser().absolute()}; to change it: --set data.folder=…)"
        )
    raise NotFoundError(f"{path.absolute()}: {problem}{hint}")


def locate_all(names: FileNames, folder: str) -> list[Path]:
    """Return the paths of the files that a setting lists, in the order of the setting.

    A pattern, such as *.de, is replaced by the files that match it. Raise a NotFoundError that
    lists every missing file and every pattern without a match.
    """
    paths: list[Path] = []
    problems: list[str] = []
    has_pattern = False
    for name in list_file_names(names):
        try:
            if _is_pattern(name, folder):
                has_pattern = True
                paths += _expand(name, folder)
            else:
                paths.append(locate(name, folder))
        except NotFoundError as error:
            problems.append(str(error))
    if problems:
        raise NotFoundError("\n".join(problems))
    repeated = [path for path, count in Counter(paths).items() if count > 1]
    if has_pattern and repeated:
        raise DataError(
            f"{repeated[0]}: {' and '.join(list_file_names(names))} name this file more than once; "
            "make the patterns match each file once"
        )
    return paths


def _is_pattern(name: str, folder: str) -> bool:
    """Return True if the name contains *, ? or [ and no file has this name."""
    return (
        glob.has_magic(name) and not (Path(folder).expanduser() / Path(name).expanduser()).is_file()
    )


def _expand(pattern: str, folder: str) -> list[Path]:
    """Return the files that match a pattern, sorted by name. ** matches any number of folders."""
    root = Path(folder).expanduser()
    full_pattern = str(root / Path(pattern).expanduser())
    if not Path(pattern).expanduser().is_absolute():
        # The name of the data folder is not a part of the pattern.
        full_pattern = str(Path(glob.escape(str(root))) / pattern)
    found = sorted(Path(name) for name in glob.glob(full_pattern, recursive=True))
    files = [path for path in found if path.is_file()]
    if not files:
        raise NotFoundError(
            f"no file matches the pattern '{pattern}' in the folder {root.absolute()}; correct the "
            "pattern, or set the folder with --set data.folder=…"
        )
    return files


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their line endings.

    The file may be compressed with gzip or zstd, which is detected from its first bytes. An invalid
    line raises a DataError.
    """
    return map(_raise_if_invalid, read_lines_or_problems(FilePart(path)))


def read_lines_or_problems(part: FilePart) -> Iterator[str | InvalidLine]:
    """Yield the lines in a part of a file, without their line endings.

    If a line contains NUL bytes or is not UTF-8, yield an `InvalidLine` object instead of its text.
    A line that is too long raises a DataError.
    """
    path, number = part.path, part.first_line
    size = None if part.stop is None else part.stop - part.start
    try:
        with open_file(path) as file:
            if part.start:
                file.seek(part.start)
            for line in _decode_lines(file, str(path), number, size):
                number += 1
                yield line
    except DamagedFileError as error:
        raise DataError(f"{path}:{number}: {error}") from error
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error


def count_file_lines(path: Path) -> int:
    """Count the lines of a file. The file may be compressed with gzip or zstd.

    If the compressed data is damaged, return the number of lines before the damage.
    """
    lines, last = 0, b"\n"
    with suppress(DamagedFileError), open_file(path) as file:
        while block := file.read(BLOCK_BYTES):
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")


def decode_lines(file: BinaryIO, name: str) -> Iterator[str]:
    """Decode the UTF-8 lines of an open file. Errors start with name:line.

    A line ends at \\n. A \\r before the \\n is removed too. A byte order mark at the start of the
    file is removed. Invalid UTF-8, NUL bytes and lines above MAX_BYTES raise a DataError.
    """
    return map(_raise_if_invalid, _decode_lines(file, name))


def _raise_if_invalid(line: str | InvalidLine) -> str:
    if isinstance(line, InvalidLine):
        raise DataError(str(line))
    return line


def _decode_lines(
    file: BinaryIO, name: str, number: int = 1, size: int | None = None
) -> Iterator[str | InvalidLine]:
    """Yield the decoded lines of an open file. Yield an `InvalidLine` for each invalid line.

    name:   name of the file, for error messages
    number: line number of the first line, for error messages
    size:   number of bytes to read. Default: None, which means until the end of the file
    """
    remaining = math.inf if size is None else size
    # The line ending and the byte order mark do not count towards MAX_BYTES.
    limit = MAX_BYTES + 2 + len(BYTE_ORDER_MARK)
    while remaining > 0 and (raw := file.readline(limit)):
        yield _decode(raw, name, number)
        number += 1
        remaining -= len(raw)


def _decode(raw: bytes, name: str, number: int) -> str | InvalidLine:
    if number == 1:
        raw = raw.removeprefix(BYTE_ORDER_MARK)
    line = raw.removesuffix(b"\n").removesuffix(b"\r")
    if len(line) > MAX_BYTES:
        raise DataError(
            f"{name}:{number}: the line is longer than {MAX_BYTES:,} bytes; "
            "split the text into one sentence per line"
        )
    if b"\0" in line:
        return InvalidLine(
            f"{name}:{number}",
            "the line contains a NUL byte, so the file is not UTF-8 text",
            "convert it, for example with: iconv -f UTF-16 -t UTF-8",
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        return InvalidLine(
            f"{name}:{number}",
            f"byte {error.start + 1} of the line (0x{line[error.start]:02x}) is not valid UTF-8",
            "convert it, for example with: iconv -f LATIN1 -t UTF-8",
        )


def shorten(text: str, limit: int = 60) -> str:
    """Cut a text to `limit` characters for an error message."""
    return text if len(text) <= limit else text[:limit] + "…"
