"""A tokenizer for texts of many lines, in which the newline is a token."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from seqloom.text.tokenizer import Tokenizer, content_digest, write_content

NEWLINE_PIECE = "<eol>"
"""Label that `pieces` returns for the newline token. `decode` converts the token to a newline
character."""


class LongTextTokenizer:
    """Encodes each line with a tokenizer for single lines and adds a newline token between lines.

    The id of the newline token follows the last id of the line tokenizer. Every line is encoded
    independently, so that line breaks do not change the tokens of the words around them.
    decode(encode(x)) == x if the line tokenizer restores every line of x.
    """

    kind: ClassVar[str] = "running-text"
    """Name of this type of tokenizer. Saved files and `digest` contain it, so it must not
    change."""

    def __init__(self, line_tokenizer: Tokenizer) -> None:
        self.line_tokenizer = line_tokenizer
        self.preprocessing = line_tokenizer.preprocessing
        self.newline = line_tokenizer.size
        """Id of the newline token."""

    @property
    def unknown_unit(self) -> Literal["character", "word"]:
        return self.line_tokenizer.unknown_unit

    @property
    def size(self) -> int:
        return self.line_tokenizer.size + 1

    @property
    def digest(self) -> str:
        return content_digest({"kind": self.kind, "lines": self.line_tokenizer.digest})

    def encode(self, text: str) -> list[int]:
        first_line, *other_lines = text.split("\n")
        ids = self.line_tokenizer.encode(first_line)
        for line in other_lines:
            ids += [self.newline, *self.line_tokenizer.encode(line)]
        return ids

    def unknown(self, text: str) -> list[str]:
        return [part for line in text.split("\n") for part in self.line_tokenizer.unknown(line)]

    def decode(self, ids: Sequence[int]) -> str:
        return "\n".join(self.line_tokenizer.decode(line) for line in self._lines(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        first_line, *other_lines = (self.line_tokenizer.pieces(line) for line in self._lines(ids))
        return [
            *first_line,
            *(piece for line in other_lines for piece in (NEWLINE_PIECE, *line)),
        ]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        """Return for each token the index of its word in the whole text.

        The index is -1 for newline tokens and other tokens that belong to no word.
        """
        indices: list[int] = []
        words_before = 0
        for line in self._lines(ids):
            indices += [
                index if index < 0 else words_before + index
                for index in self.line_tokenizer.word_of(line)
            ]
            indices.append(-1)
            words_before += len(self.line_tokenizer.decode(line).split())
        return indices[:-1]

    def save(self, folder: Path, name: str) -> None:
        self.line_tokenizer.save(folder, line_tokenizer_name(name))
        write_content(folder / f"{name}.json", {"kind": self.kind})

    def _lines(self, ids: Sequence[int]) -> Iterator[list[int]]:
        """Yield the token ids of each line, without the newline tokens between the lines."""
        line: list[int] = []
        for id_ in ids:
            if id_ == self.newline:
                yield line
                line = []
            else:
                line.append(id_)
        yield line


def line_tokenizer_name(name: str) -> str:
    """Return the name under which the line tokenizer of a long-text tokenizer is saved.

    name: name of the long-text tokenizer
    """
    return f"{name}-line"


def newline_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of the newline token; None if the tokenizer encodes single lines only."""
    return tokenizer.newline if isinstance(tokenizer, LongTextTokenizer) else None


def encode_target(tokenizer: Tokenizer, text: str) -> list[int]:
    """Encode a target for training or scoring.

    A tokenizer for single lines gets the text without white space at both ends. A tokenizer for
    long text gets the text unchanged.
    """
    is_long_text = isinstance(tokenizer, LongTextTokenizer)
    return tokenizer.encode(text if is_long_text else text.strip())
