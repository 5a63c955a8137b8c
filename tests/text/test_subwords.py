from typing import Literal

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import ConfigError, DataError
from seqloom.text.subwords import Subwords
from seqloom.text.tags import Tags
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

LINES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 4
NO_TAGS = Tags(())
SUBWORDS = Subwords.train(LINES, NO_TAGS, False, 40, "bpe")

Algorithm = Literal["bpe", "unigram"]
both = pytest.mark.parametrize("algorithm", ["bpe", "unigram"])


def test_the_special_tokens_have_the_ids_they_have_everywhere() -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=SUBWORDS.model)
    ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
    assert ids == (PAD, START, END, UNKNOWN)


@given(st.lists(st.sampled_from(" ".join(LINES).split())).map(" ".join))
def test_our_text_is_sentencepieces_text(text: str) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=SUBWORDS.model)
    ids = SUBWORDS.encode(text)
    assert SUBWORDS.decode(ids) == processor.decode(ids)


def test_runs_of_blanks_become_one_space_and_nothing_else_changes() -> None:
    assert SUBWORDS.decode(SUBWORDS.encode("  the \t cat  ")) == "the cat"
    wide = Subwords.train(["ﬁne ① Å a b"], NO_TAGS, False, 14, "bpe")
    assert wide.decode(wide.encode("ﬁne ① Å")) == "ﬁne ① Å"


@both
def test_a_vocabulary_that_does_not_fit_is_refused_with_the_size_that_does(
    algorithm: Algorithm,
) -> None:
    with pytest.raises(ConfigError, match=r"of 5000 subwords .* at most \d+; set text.tok") as info:
        Subwords.train(LINES, NO_TAGS, False, 5_000, algorithm)
    possible = int(str(info.value).split("at most ")[1].split(";")[0])
    assert Subwords.train(LINES, NO_TAGS, False, possible, algorithm).size == possible


@both
def test_a_vocabulary_too_small_for_the_characters_is_refused(algorithm: Algorithm) -> None:
    with pytest.raises(ConfigError, match=r"of 6 subwords is too small: .* alone are \d+"):
        Subwords.train(LINES, NO_TAGS, False, 6, algorithm)


def test_half_a_character_is_refused() -> None:
    with pytest.raises(DataError, match="is not valid Unicode"):
        SUBWORDS.encode("the \ud800")


def test_learning_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    Subwords.train(LINES, NO_TAGS, False, 25, "unigram")
    with pytest.raises(ConfigError):
        Subwords.train(LINES, NO_TAGS, False, 5_000, "bpe")
    assert capfd.readouterr() == ("", "")
