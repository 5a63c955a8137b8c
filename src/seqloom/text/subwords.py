"""Pieces of words, learned by sentencepiece."""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

import sentencepiece

from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.core.storage import write_file
from seqloom.text.tags import SPACE, Tags
from seqloom.text.tokenizer import content_digest, damaged, words_of, write_content
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

MAX_SENTENCES = 2_000_000
"""From a larger corpus this many lines are drawn at random, so that memory stays bounded."""
MAX_BYTES = 1_000_000
"""A longer line is not used for learning pieces; the readers refuse it before."""

_BLANKS = re.compile(r"[ \t\n\r\v\f]+")


class Subwords:
    """Pieces learned by byte-pair encoding or a unigram model (Kudo and Richardson 2018).

    Every character of the training text is a piece, so only a character never seen is UNKNOWN.
    The text is not normalised, but for runs of spaces, which become one, and those at the ends,
    which go: apart from that decode(encode(x)) == x for every text of known characters. The
    character ▁, which stands for a space inside a piece, comes back as a space.
    """

    def __init__(self, model: bytes, tags: Tags, lowercase: bool) -> None:
        self.model = model
        self.tags = tags
        self.lowercase = lowercase
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._names = [self._processor.id_to_piece(id_) for id_ in range(self.size)]

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        tags: Tags,
        lowercase: bool,
        size: int,
        algorithm: Literal["bpe", "unigram"],
    ) -> "Subwords":
        """Memory is that of MAX_SENTENCES lines at most; the same lines give the same pieces."""
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_folded(lines, tags, lowercase),
                model_writer=model,
                vocab_size=size,
                model_type=algorithm,
                pad_id=PAD,
                bos_id=START,
                eos_id=END,
                unk_id=UNKNOWN,
                user_defined_symbols=list(tags.names),
                character_coverage=1.0,
                byte_fallback=False,
                normalization_rule_name="identity",
                input_sentence_size=MAX_SENTENCES,
                shuffle_input_sentence=True,
                max_sentence_length=MAX_BYTES,
                num_threads=16,  # part of the model file: the same on every machine
                minloglevel=4,
            )
        except RuntimeError as error:
            _explain(error, size)
        return cls(model.getvalue(), tags, lowercase)

    @classmethod
    def load(cls, path: Path, content: dict[str, Any]) -> "Subwords":
        """`path` is the sentencepiece model that `content` describes."""
        try:
            model = path.read_bytes()
        except OSError as error:
            raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error
        if hashlib.sha256(model).hexdigest() != content["sha256"]:
            raise damaged(path)
        return cls(model, Tags(content["tags"]), content["lowercase"])

    def _content(self) -> dict[str, Any]:
        return {
            "kind": "subwords",
            "lowercase": self.lowercase,
            "tags": list(self.tags.names),
            "sha256": hashlib.sha256(self.model).hexdigest(),
        }

    @property
    def size(self) -> int:
        return self._processor.get_piece_size()

    @property
    def digest(self) -> str:
        return content_digest(self._content())

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(self._utf8(text))

    def _utf8(self, text: str) -> bytes:
        """As sentencepiece wants it."""
        try:
            return _fold(text, self.tags, self.lowercase).encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(f"{text!r}: is not valid Unicode: half of a surrogate pair") from error

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        return ["" if id_ < UNKNOWN else self._names[id_].replace(SPACE, " ") for id_ in ids]

    def decode(self, ids: Sequence[int]) -> str:
        # sentencepiece puts a space before the first word, so that it looks like any other.
        return "".join(self._surfaces(ids)).removeprefix(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._names[id_] for id_ in ids]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        return words_of(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        write_file(folder / f"{name}.model", self.model)
        write_content(folder / f"{name}.json", self._content())


def _fold(text: str, tags: Tags, lowercase: bool) -> str:
    return _BLANKS.sub(" ", tags.lower(text) if lowercase else text)


def _folded(lines: Iterable[str], tags: Tags, lowercase: bool) -> Iterator[str]:
    for line in lines:
        yield _fold(line, tags, lowercase)


def _explain(error: RuntimeError, size: int) -> NoReturn:
    """sentencepiece names the bound that was broken; say it in the words of a recipe."""
    message = str(error)
    setting = "text.tokenizer.size (text.target_tokenizer.size, if the target has its own)"
    if found := re.search(r"too high.*<= (\d+)", message):
        raise ConfigError(
            f"a vocabulary of {size} subwords does not fit: the training text yields at most "
            f"{found[1]}; set {setting} to {found[1]} or less, or give more text"
        ) from error
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        raise ConfigError(
            f"a vocabulary of {size} subwords is too small: the special tokens, tags and single "
            f"characters of the training text alone are {found[1]}; set {setting} well above that"
        ) from error
    raise ConfigError(f"sentencepiece cannot learn from the training text: {message}") from error
