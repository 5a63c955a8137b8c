"""The tokenizer of imported models: a sentencepiece model and a separate table of pieces."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import sentencepiece

from seqloom.core.errors import DataError
from seqloom.core.storage import write_file
from seqloom.text.preprocessing import SPACE, Preprocessing, Tags
from seqloom.text.tokenizer import (
    content_digest,
    read_model,
    word_indices,
    write_content,
)
from seqloom.text.vocabulary import UNKNOWN


@dataclass(frozen=True)
class ImportedRules:
    """What happens to a text before sentencepiece splits it into pieces.

    special:      strings that are a token of their own, wherever they occur in a text. As in the
                  Hugging Face library, they include the names of special tokens such as </s>
    leading_tag:  if True, a string such as >>fr<< at the start of a text is a token of its own
                  (Marian)
    first_pieces: pieces that are put in front of every text, for example the source language
    keep_space:   if True, white space at the end of a text becomes a piece (NllbTokenizer). If
                  False, sentencepiece removes this white space
    """

    special: tuple[str, ...] = ()
    leading_tag: bool = False
    first_pieces: tuple[str, ...] = ()
    keep_space: bool = False


class ImportedTokenizer:
    """Splits text into pieces with a sentencepiece model. A table gives the id of each piece.

    The ids in the sentencepiece model itself are not used. A piece that is not in the table is
    UNKNOWN. The sentencepiece model also defines how a text is normalised.

    Unlike other tokenizers, `encode` can return PAD, START and END, if a text contains the name of
    a special token, such as </s>.
    """

    kind: ClassVar[str] = "imported"
    unknown_unit: ClassVar[Literal["character", "word"]] = "character"

    def __init__(
        self, model: bytes, pieces: Sequence[str], tags: Tags, rules: ImportedRules
    ) -> None:
        """
        model:  a serialised sentencepiece model
        pieces: the piece of each id. The first four are the special tokens
        tags:   the tags of the target languages
        """
        self.model = model
        self.preprocessing = Preprocessing(tags)
        self.rules = rules
        self._pieces = tuple(pieces)
        self._ids = {piece: id_ for id_, piece in enumerate(pieces)}
        assert len(self._ids) == len(pieces), "a piece is listed twice"
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        longest_first = sorted(rules.special, key=len, reverse=True)
        # As in transformers, white space before <mask> is part of it.
        names = [rf"\s*{name}" if name == "<mask>" else re.escape(name) for name in longest_first]
        self._special = re.compile(f"({'|'.join(names)})") if names else None

    @classmethod
    def load(cls, path: Path, content: dict[str, Any]) -> "ImportedTokenizer":
        """Load a tokenizer.

        path:    path of the sentencepiece model
        content: content of the tokenizer's JSON file
        """
        model = read_model(path, content)
        rules = ImportedRules(
            special=tuple(content["special"]),
            leading_tag=content["leading_tag"],
            first_pieces=tuple(content["first_pieces"]),
            keep_space=content["keep_space"],
        )
        return cls(model, content["pieces"], Tags(content["tags"]), rules)

    def _content(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sha256": hashlib.sha256(self.model).hexdigest(),
            "pieces": list(self._pieces),
            "tags": list(self.preprocessing.tags.names),
            "special": list(self.rules.special),
            "leading_tag": self.rules.leading_tag,
            "first_pieces": list(self.rules.first_pieces),
            "keep_space": self.rules.keep_space,
        }

    @property
    def size(self) -> int:
        return len(self._pieces)

    @property
    def digest(self) -> str:
        return content_digest(self._content())

    def _split(self, text: str) -> Iterator[str]:
        """Yield the pieces of a text, including pieces that have no id."""
        if text in self.preprocessing.tags.names and not self.rules.first_pieces:
            # The task encodes the tag of the target language in this way, as a text of its own.
            yield text
            return
        yield from self.rules.first_pieces
        parts = [text] if self._special is None else self._special.split(text)
        for index, part in enumerate(parts):
            if index % 2:  # re.split returns the special strings at odd indices
                yield part.lstrip()
            elif part:
                yield from self._split_part(part)

    def _split_part(self, text: str) -> Iterator[str]:
        end = text.find("<<") if self.rules.leading_tag and text.startswith(">>") else -1
        if end != -1:
            yield text[: end + 2]
            text = text[end + 2 :]
        try:
            utf8 = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"{text!r}: is not valid Unicode: it contains half of a surrogate pair"
            ) from error
        yield from self._processor.encode(utf8, out_type=str)
        # With a character after it, sentencepiece keeps white space.
        if self.rules.keep_space and self._processor.normalize(text + "|").endswith(f"{SPACE}|"):
            yield SPACE

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(piece, UNKNOWN) for piece in self._split(text)]

    def unknown(self, text: str) -> list[str]:
        """Return the pieces of a text that are encoded as UNKNOWN."""
        return [piece for piece in self._split(text) if self._ids.get(piece, UNKNOWN) == UNKNOWN]

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        return ["" if id_ < UNKNOWN else self._pieces[id_].replace(SPACE, " ") for id_ in ids]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._surfaces(ids)).strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._pieces[id_] for id_ in ids]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        return word_indices(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        write_file(folder / f"{name}.model", self.model)
        write_content(folder / f"{name}.json", self._content())
