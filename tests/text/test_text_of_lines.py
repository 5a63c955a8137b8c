"""Running text: the end of a line is a token, whatever lines are cut into."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.text import (
    CharactersConfig,
    SubwordsConfig,
    TokenizerConfig,
    WhitespaceConfig,
    WordsConfig,
)
from seqloom.text.build import load_tokenizer, train_tokenizer
from seqloom.text.running import RunningText, encode_target, newline_of
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import UNKNOWN

VERSE = ["the cat sat on the mat ,", "the dog sat too .", "so it was", "a", "b"]
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
    return train_tokenizer(kind, VERSE, (), lowercase=False)


@every_kind
def test_every_line_is_cut_as_if_it_stood_alone_and_ends_in_one_token(
    kind: TokenizerConfig,
) -> None:
    alone = line_tokenizer(kind)
    whole = RunningText(alone)
    assert whole.size == alone.size + 1
    expected = []
    for line in VERSE:
        expected += [*alone.encode(line), whole.newline]
    assert whole.encode("".join(f"{line}\n" for line in VERSE)) == expected


@every_kind
@given(lines=st.lists(st.sampled_from(["", *VERSE]), max_size=5))
def test_what_was_encoded_comes_back_line_by_line(kind: TokenizerConfig, lines: list[str]) -> None:
    tokenizer = RunningText(line_tokenizer(kind))
    text = "\n".join(lines)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.pieces(ids).count("<eol>") == text.count("\n")
    words = text.split()
    for piece, word in zip(tokenizer.pieces(ids), tokenizer.word_of(ids), strict=True):
        assert piece == "<eol>" if word < 0 else piece.strip("▁￭ ") in words[word]


@every_kind
def test_it_comes_back_from_disk(kind: TokenizerConfig, tmp_path: Path) -> None:
    tokenizer = RunningText(line_tokenizer(kind))
    tokenizer.save(tmp_path, "target")
    again = load_tokenizer(tmp_path, "target")
    assert again.digest == tokenizer.digest != tokenizer.inner.digest
    assert newline_of(again) == tokenizer.newline
    assert again.encode("a\nb") == tokenizer.encode("a\nb")


def test_space_around_a_line_is_text_in_running_text_alone() -> None:
    alone = train_tokenizer(CharactersConfig(), [" a "], (), lowercase=False)
    assert encode_target(alone, " a ") == alone.encode("a")
    assert encode_target(RunningText(alone), " a ") == alone.encode(" a ")
    assert newline_of(alone) is None


def test_text_that_was_cut_before_is_cut_at_spaces_alone() -> None:
    """As WikiText is: @-@ is a token, and <unk> is the unknown one."""
    line = "a state @-@ of @-@ the @-@ art <unk> 's"
    tokenizer = train_tokenizer(WhitespaceConfig(), [line], (), lowercase=False)
    ids = tokenizer.encode(line)
    assert len(ids) == len(line.split())
    assert tokenizer.size == 4 + len(set(line.split())) - 1
    assert [place for place, id_ in enumerate(ids) if id_ == UNKNOWN] == [8]
    assert tokenizer.decode(ids) == line
    assert tokenizer.encode("elephant") == [UNKNOWN]
    assert tokenizer.word_of(ids) == list(range(len(ids)))
