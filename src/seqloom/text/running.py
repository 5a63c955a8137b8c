"""Texts of many lines: the end of a line is a token."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from seqloom.text.tokenizer import Tokenizer, content_digest, write_content

LINE_END = "<eol>"
"""What the end of a line is called in pictures; in a text it is what it is."""


class RunningText:
    """A tokenizer for one line, used line by line; its next free id is the end of a line.

    Every line is cut as if it stood alone, so that a word looks the same wherever a line is broken.
    decode(encode(x)) == x whenever the tokenizer inside gives back every line of x.
    """

    def __init__(self, inner: Tokenizer) -> None:
        self.inner = inner
        self.lowercase = inner.lowercase
        self.tags = inner.tags
        self.newline = inner.size

    @property
    def size(self) -> int:
        return self.inner.size + 1

    @property
    def digest(self) -> str:
        return content_digest({"kind": "running-text", "lines": self.inner.digest})

    def encode(self, text: str) -> list[int]:
        first, *others = text.split("\n")
        ids = self.inner.encode(first)
        for line in others:
            ids += [self.newline, *self.inner.encode(line)]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return "\n".join(self.inner.decode(line) for line in self._lines(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        first, *others = (self.inner.pieces(line) for line in self._lines(ids))
        return [*first, *(piece for line in others for piece in (LINE_END, *line))]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        """The end of a line is part of no word."""
        words: list[int] = []
        before = 0
        for line in self._lines(ids):
            words += [word if word < 0 else before + word for word in self.inner.word_of(line)]
            words.append(-1)
            before += len(self.inner.decode(line).split())
        return words[:-1]

    def save(self, folder: Path, name: str) -> None:
        self.inner.save(folder, inner_name(name))
        write_content(folder / f"{name}.json", {"kind": "running-text"})

    def _lines(self, ids: Sequence[int]) -> Iterator[list[int]]:
        """The ids between the ends of lines: one list more than there are ends."""
        line: list[int] = []
        for id_ in ids:
            if id_ == self.newline:
                yield line
                line = []
            else:
                line.append(id_)
        yield line


def inner_name(name: str) -> str:
    """What the tokenizer of single lines is called on disk."""
    return f"{name}-line"


def newline_of(tokenizer: Tokenizer) -> int | None:
    """The end of a line; None where texts have one line only."""
    return tokenizer.newline if isinstance(tokenizer, RunningText) else None


def encode_target(tokenizer: Tokenizer, text: str) -> list[int]:
    """A target as it is learned and scored.

    White space around a sentence means nothing. In running text it is text.
    """
    return tokenizer.encode(text if isinstance(tokenizer, RunningText) else text.strip())
