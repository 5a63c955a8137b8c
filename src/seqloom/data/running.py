"""One long text, line by line."""

from collections.abc import Iterator
from pathlib import Path

from seqloom.config.schema.corpora import LongTextConfig
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines


def read_running_text(config: LongTextConfig, folder: str) -> Iterator[Example]:
    """The lines of a part of a file, each with its end, in constant memory.

    A line belongs to the part in which it begins; so parts that meet share no line and lose none.
    """
    path = locate(config.path, folder)
    whole = (config.begin, config.end) == (0, 1)
    total = 0 if whole else _characters(path)
    before = 0
    for number, line in enumerate(read_lines(path), start=1):
        text = f"{line}\n"
        if whole or config.begin * total <= before < config.end * total:
            yield Example("", text, (text,), f"{path}:{number}")
        before += len(text)


def _characters(path: Path) -> int:
    """Of the whole file, the end of each line included."""
    return sum(len(line) + 1 for line in read_lines(path))
