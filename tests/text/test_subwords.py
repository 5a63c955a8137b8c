"""Subword tokenizers trained with sentencepiece."""

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
def test_a_vocabulary_that_is_too_large_is_rejected_with_the_largest_possible_size(
    algorithm: Algorithm,
) -> None:
    with pytest.raises(ConfigError, match=r"of 5000 subwords .* at most \d+; set text.tok") as info:
        SubwordTokenizer.train(LINES, NO_TAGS, False, 5_000, algorithm)
    largest = int(str(info.value).split("at most ")[1].split(";")[0])
    assert SubwordTokenizer.train(LINES, NO_TAGS, False, largest, algorithm).size == largest


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
        SubwordTokenizer.train(LINES, NO_TAGS, False, 5_000, "bpe")
    assert capfd.readouterr() == ("", "")
