"""Reads plain text for language models: one sentence per line, or one long text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqloom.config.schema.corpora import LinesConfig, LongTextConfig
from seqloom.data.corpus.digests import file_digest
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.reader import LineReader, Reader, Records
from seqloom.data.readers.text_files import FilePart, read_lines, read_lines_or_problems


class LinesReader(LineReader[LinesConfig]):
    """Reads lines. A line is the target of an example without a source."""

    def read_part(self, parts: Sequence[FilePart]) -> Records:
        (part,) = parts
        for number, line in enumerate(read_lines_or_problems(part), start=part.first_line):
            if isinstance(line, InvalidLine):
                yield line
            else:
                yield Example("", line, (line,), f"{part.path}:{number}")


class LongTextReader(Reader[LongTextConfig]):
    """Reads the lines of a section of a text, each with its line ending, in constant memory.

    The text consists of all files of the corpus, one after the other. The settings `begin` and `end`
    are fractions of its characters: 0 is the start of the text, and 1 is its end. A line belongs to
    the section in which it starts, so adjacent sections never share a line.
    """

    def read(self) -> Records:
        begin, end = self.corpus.begin, self.corpus.end
        paths = self.paths()
        is_whole_text = (begin, end) == (0, 1)
        total = 0 if is_whole_text else sum(map(_count_characters, paths))
        offset = 0
        for path in paths:
            for number, line in enumerate(read_lines(path), start=1):
                text = f"{line}\n"
                if is_whole_text or begin * total <= offset < end * total:
                    yield Example("", text, (text,), f"{path}:{number}")
                offset += len(text)

    def identity(self) -> list[Any]:
        """Window settings are left out: they do not change the tokenised text."""
        # The former name of this kind. With it, existing runs can be resumed.
        settings = {"kind": "running-text", "begin": self.corpus.begin, "end": self.corpus.end}
        return [settings, *map(file_digest, self.paths())]


def _count_characters(path: Path) -> int:
    """Count the characters of a file. Each line ending counts as one character."""
    return sum(len(line) + 1 for line in read_lines(path))
