"""Adds tags to a trained vocabulary. All other tokens keep their ids."""

import struct
from collections.abc import Sequence
from typing import TypeVar

from seqloom.core.errors import ConfigError
from seqloom.text.preprocessing import Preprocessing, Tags
from seqloom.text.subwords import SubwordTokenizer
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import SPECIAL_TOKENS, UNKNOWN, Vocabulary
from seqloom.text.vocabulary_tokenizer import VocabularyTokenizer

AnyVocabularyTokenizer = TypeVar("AnyVocabularyTokenizer", bound=VocabularyTokenizer)

USER_DEFINED = 4
"""Type of a sentencepiece piece that is always a single token."""


def token_id(tokenizer: Tokenizer, piece: str) -> int | None:
    """Return the id of a token; None if the vocabulary does not contain the token."""
    match tokenizer:
        case VocabularyTokenizer():
            id_ = tokenizer.vocabulary.id(piece)
        case SubwordTokenizer():
            id_ = tokenizer.piece_id(piece)
        case _:
            return None
    return None if id_ <= UNKNOWN else id_


def add_tags(tokenizer: Tokenizer, tags: Sequence[str]) -> Tokenizer:
    """Return a tokenizer with these tags at the end of its vocabulary.

    The id of the first new tag is the size of the old vocabulary.
    """
    known = [tag for tag in tags if token_id(tokenizer, tag) is not None]
    if known:
        raise ConfigError(
            f"text.new_tags: {', '.join(known)} is already in the vocabulary; remove it from "
            "new_tags, or choose another name"
        )
    old = tokenizer.preprocessing
    names = Tags((*old.tags.names, *tags), old.normalization)
    preprocessing = Preprocessing(names, old.lowercase)
    new = names.names[len(old.tags.names) :]  # in the form of the vocabulary
    match tokenizer:
        case VocabularyTokenizer():
            return _extend_vocabulary(tokenizer, preprocessing, new)
        case SubwordTokenizer():
            model = tokenizer.model + b"".join(map(_encode_piece, new))
            return SubwordTokenizer(model, preprocessing)
        case _:
            raise ConfigError(
                "text.new_tags: tags cannot be added to this tokenizer; remove new_tags"
            )


def _extend_vocabulary(
    tokenizer: AnyVocabularyTokenizer, preprocessing: Preprocessing, tags: Sequence[str]
) -> AnyVocabularyTokenizer:
    pieces = tokenizer.vocabulary.pieces[len(SPECIAL_TOKENS) :]
    return type(tokenizer)(Vocabulary((*pieces, *tags)), preprocessing)


def _encode_piece(tag: str) -> bytes:
    """Encode a tag as bytes. To add the tag to a sentencepiece model, append these bytes to it.

    The model is a protobuf message, and its field 1 is the list of pieces. In protobuf, further
    elements of a list may follow at the end of the message.
    """
    name = tag.encode("utf-8")
    # Fields of `SentencePiece`: 1 is the string, 2 the score (32-bit float), 3 the type.
    piece = b"\x0a" + _varint(len(name)) + name
    piece += b"\x15" + struct.pack("<f", 0.0)
    piece += b"\x18" + _varint(USER_DEFINED)
    return b"\x0a" + _varint(len(piece)) + piece


def _varint(number: int) -> bytes:
    """Encode a number as a varint of protobuf.

    Each byte contains 7 bits of the number, the least significant bits first. The highest bit of a
    byte is set if another byte follows.
    """
    digits = bytearray()
    while number >= 128:
        digits.append(number % 128 | 128)
        number //= 128
    return bytes([*digits, number])
