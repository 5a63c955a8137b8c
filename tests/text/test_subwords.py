"""Subword tokenizers trained with sentencepiece."""

from collections.abc import Iterator
from typing import Literal

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import ConfigError, DataError
from seqloom.text.subwords import SubwordTokenizer
from seqloom.text.tokenizer import Tags
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

LINES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 4
NO_TAGS = Tags(())
SUBWORDS = SubwordTokenizer.train(LINES, NO_TAGS, False, 40, "bpe")

Algorithm = Literal["bpe", "unigram"]
both_algorithms = pytest.mark.parametrize("algorithm", ["bpe", "unigram"])


def test_the_special_tokens_have_their_usual_ids() -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=SUBWORDS.model)
    ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
    assert ids == (PAD, START, END, UNKNOWN)


@given(st.lists(st.sampled_from(" ".join(LINES).split())).map(" ".join))
def test_decode_equals_the_decoding_of_sentencepiece(text: str) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=SUBWORDS.model)
    ids = SUBWORDS.encode(text)
    assert SUBWORDS.decode(ids) == processor.decode(ids)


def test_only_white_space_is_normalised() -> None:
    assert SUBWORDS.decode(SUBWORDS.encode("  the \t cat  ")) == "the cat"
    wide = SubwordTokenizer.train(["ﬁne ① Å a b"], NO_TAGS, False, 14, "bpe")
    assert wide.decode(wide.encode("ﬁne ① Å")) == "ﬁne ① Å"


@both_algorithms
def test_little_text_yields_fewer_pieces_than_the_recipe_asks_for(algorithm: Algorithm) -> None:
    small = SubwordTokenizer.train(LINES, NO_TAGS, False, 5_000, algorithm)
    assert len(set("".join(LINES))) < small.size < 5_000
    assert small.decode(small.encode(LINES[0])) == LINES[0]


def test_an_error_while_lines_are_read_keeps_its_type() -> None:
    def lines() -> Iterator[str]:
        yield from LINES
        raise DataError("line 3 is damaged")

    with pytest.raises(DataError, match="line 3 is damaged"):
        SubwordTokenizer.train(lines(), NO_TAGS, False, 60, "bpe")


@both_algorithms
def test_a_vocabulary_that_is_too_small_for_the_characters_is_rejected(
    algorithm: Algorithm,
) -> None:
    with pytest.raises(ConfigError, match=r"of 6 subwords is too small: .* alone are \d+"):
        SubwordTokenizer.train(LINES, NO_TAGS, False, 6, algorithm)


def test_half_of_a_surrogate_pair_is_rejected() -> None:
    with pytest.raises(DataError, match="is not valid Unicode"):
        SUBWORDS.encode("the \ud800")


def test_training_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    SubwordTokenizer.train(LINES, NO_TAGS, False, 25, "unigram")
    with pytest.raises(ConfigError):
        SubwordTokenizer.train(LINES, NO_TAGS, False, 6, "bpe")
    assert capfd.readouterr() == ("", "")
