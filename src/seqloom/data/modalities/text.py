"""Text as a source: token ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.signature import Tokens
from seqloom.data.corpus.token_store import TokenStore, TokenWriter
from seqloom.data.example import Example
from seqloom.data.modalities.modality import Modality, SourceInput, SourceWriter
from seqloom.text.build import load_tokenizer
from seqloom.text.subwords import encode_all
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import END, SPECIAL_TOKENS

if TYPE_CHECKING:  # imports torch, which takes seconds, and worker processes do not need it
    from seqloom.core.batch import Padded

SOURCE = "source"
"""Name of the sources in the files of a run and of a corpus."""


@dataclass(frozen=True)
class TextInput(SourceInput):
    """The token ids of a text, without END."""

    tokens: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        return len(self.tokens)

    @classmethod
    def collate(cls, inputs: Sequence[Self]) -> "Padded":
        from seqloom.data.batching.collate import pad_ids

        return pad_ids([np.array(one.tokens, dtype=np.int32) for one in inputs], last=END)


class TextModality(Modality):
    """Texts, converted to token ids."""

    file: ClassVar[str] = f"{SOURCE}.offsets"
    is_one_shard: ClassVar[bool] = False
    tokenizer: Tokenizer

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @classmethod
    def learn(cls, config: RunConfig, tokenizer: Tokenizer | None, sources: Iterable[str]) -> Self:
        assert tokenizer is not None
        return cls(tokenizer)

    @classmethod
    def load(cls, config: RunConfig, folder: Path) -> Self:
        return cls(load_tokenizer(folder, SOURCE))

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder, SOURCE)

    @property
    def spec(self) -> Tokens:
        return Tokens(self.tokenizer.size)

    def prepare(self, text: str) -> TextInput:
        return TextInput(tuple(self.tokenizer.encode(text)))

    def pieces(self, source: SourceInput) -> tuple[str, ...]:
        return (*self.tokenizer.pieces(source.tokens), SPECIAL_TOKENS[END])

    def writer(self, folder: Path) -> "TextWriter":
        return TextWriter(folder, self.tokenizer)

    @classmethod
    def open(cls, folder: Path, shards: Sequence[Path]) -> TokenStore:
        return TokenStore(folder, shards, SOURCE)


class TextWriter(SourceWriter):
    """Writes texts as token ids."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._writer = TokenWriter(folder, SOURCE, tokenizer.size)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return encode_all(self._tokenizer, list(texts))

    def length(self, encoded: list[int]) -> int:
        return len(encoded)

    def append(self, encoded: Sequence[list[int]], examples: Sequence[Example]) -> None:
        self._writer.append(encoded)
        self.tokens, self.unknown = self._writer.total, self._writer.unknown

    def close(self) -> None:
        self._writer.close()
