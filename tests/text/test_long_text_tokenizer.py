"""The long-text tokenizer: newlines are tokens, with every line tokenizer."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.text import (
    CharactersConfig,
    SubwordsConfig,
    TokenizerConfig,
    WhitespaceConfig,
    WordsConfig,
)
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.long_text import LongTextTokenizer, encode_target, newline_id
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import UNKNOWN

LINES = ["the cat sat on the mat ,", "the dog sat too .", "so it was", "a", "b"]
KINDS: list[TokenizerConfig] = [
    CharactersConfig(),
    WordsConfig(),
    WhitespaceConfig(),
    SubwordsConfig(size=40),
]
every_kind = pytest.mark.parametrize(
    "kind", KINDS, ids=lambda kind: str(kind.model_dump().values())
)


def line_tokenizer(kind: TokenizerConfig) -> Tokenizer:
    return train_tokenizer(kind, LINES, (), lowercase=False)


@every_kind
def test_every_line_is_encoded_independently_and_followed_by_a_newline_token(
    kind: TokenizerConfig,
) -> None:
    single = line_tokenizer(kind)
    tokenizer = LongTextTokenizer(single)
    assert tokenizer.size == single.size + 1
    expected = []
    for line in LINES:
        expected += [*single.encode(line), tokenizer.newline]
    assert tokenizer.encode("".join(f"{line}\n" for line in LINES)) == expected


@every_kind
@given(lines=st.lists(st.sampled_from(["", *LINES]), max_size=5))
def test_decoding_restores_every_line(kind: TokenizerConfig, lines: list[str]) -> None:
    tokenizer = LongTextTokenizer(line_tokenizer(kind))
    text = "\n".join(lines)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.pieces(ids).count("<eol>") == text.count("\n")
    words = text.split()
    for piece, word in zip(tokenizer.pieces(ids), tokenizer.word_of(ids), strict=True):
        assert piece == "<eol>" if word < 0 else piece.strip("▁￭ ") in words[word]


@every_kind
def test_a_saved_tokenizer_is_the_same_when_loaded(kind: TokenizerConfig, tmp_path: Path) -> None:
    tokenizer = LongTextTokenizer(line_tokenizer(kind))
    tokenizer.save(tmp_path, "target")
    loaded = load_tokenizer(tmp_path, "target")
    assert loaded.digest == tokenizer.digest != tokenizer.line_tokenizer.digest
    assert newline_id(loaded) == tokenizer.newline
    assert loaded.encode("a\nb") == tokenizer.encode("a\nb")


def test_encode_target_keeps_surrounding_space_in_long_text_only() -> None:
    single = train_tokenizer(CharactersConfig(), [" a "], (), lowercase=False)
    assert encode_target(single, " a ") == single.encode("a")
    assert encode_target(LongTextTokenizer(single), " a ") == single.encode(" a ")
    assert newline_id(single) is None


def test_tokenised_text_is_split_at_white_space_only() -> None:
    """As in WikiText: @-@ is a token, and <unk> is the unknown token."""
    line = "a state @-@ of @-@ the @-@ art <unk> 's"
    tokenizer = train_tokenizer(WhitespaceConfig(), [line], (), lowercase=False)
    ids = tokenizer.encode(line)
    assert len(ids) == len(line.split())
    assert tokenizer.size == 4 + len(set(line.split())) - 1
    assert [index for index, id_ in enumerate(ids) if id_ == UNKNOWN] == [8]
    assert tokenizer.decode(ids) == line
    assert tokenizer.encode("elephant") == [UNKNOWN]
    assert tokenizer.word_of(ids) == list(range(len(ids)))
