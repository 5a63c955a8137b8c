"""Plain text, a sentence a line."""

from collections.abc import Iterator

from seqloom.config.schema.corpora import LinesConfig
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines


def read_plain_lines(config: LinesConfig, folder: str) -> Iterator[Example]:
    path = locate(config.path, folder)
    for number, line in enumerate(read_lines(path), start=1):
        yield Example("", line, (line,), f"{path}:{number}")
