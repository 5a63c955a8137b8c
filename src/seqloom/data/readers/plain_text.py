"""Reads plain text for language models: one sentence per line, or one long text."""

from collections.abc import Iterator
from pathlib import Path

from seqloom.config.schema.corpora import LinesConfig, LongTextConfig
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.text_files import (
    FilePart,
    locate_all,
    read_lines,
    read_lines_or_problems,
)


def read_plain_lines(config: LinesConfig, folder: str) -> Iterator[Example | InvalidLine]:
    """Yield an example without a source, or an `InvalidLine`, for each line."""
    for path in locate_all(config.path, folder):
        yield from read_plain_part(FilePart(path))


def read_plain_part(part: FilePart) -> Iterator[Example | InvalidLine]:
    """Yield an example or an `InvalidLine` for each line in a part of a file.

    The line is the target of the example. There is no source.
    """
    for number, line in enumerate(read_lines_or_problems(part), start=part.first_line):
        if isinstance(line, InvalidLine):
            yield line
        else:
            yield Example("", line, (line,), f"{part.path}:{number}")


def read_long_text(config: LongTextConfig, folder: str) -> Iterator[Example]:
    """Yield the lines of a section of a text, each with its line ending, in constant memory.

    The text consists of all files of the corpus, one after the other. `config.begin` and
    `config.end` are fractions of its characters: 0 is the start of the text, and 1 is its end. A
    line belongs to the section in which it starts, so adjacent sections never share a line.
    """
    paths = locate_all(config.path, folder)
    is_whole_text = (config.begin, config.end) == (0, 1)
    total = 0 if is_whole_text else sum(map(_count_characters, paths))
    offset = 0
    for path in paths:
        for number, line in enumerate(read_lines(path), start=1):
            text = f"{line}\n"
            if is_whole_text or config.begin * total <= offset < config.end * total:
                yield Example("", text, (text,), f"{path}:{number}")
            offset += len(text)


def _count_characters(path: Path) -> int:
    """Count the characters of a file. Each line ending counts as one character."""
    return sum(len(line) + 1 for line in read_lines(path))
