"""Subword tokenizers trained with sentencepiece."""

import re
from collections.abc import Iterator
from typing import Literal

import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st

from seqloom.core.errors import ConfigError, DataError
from seqloom.text.preprocessing import Preprocessing, Tags
from seqloom.text.subwords import SampledSubwordTokenizer, SubwordTokenizer
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

LINES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 4
PLAIN = Preprocessing()
SUBWORDS = SubwordTokenizer.train(LINES, PLAIN, 40, "bpe")

Algorithm = Literal["bpe", "unigram"]
ALGORITHMS: tuple[Algorithm, ...] = ("bpe", "unigram")
WITH_BYTES = {
    algorithm: SubwordTokenizer.train(LINES, PLAIN, 300, algorithm, byte_fallback=True)
    for algorithm in ALGORITHMS
}
any_text = st.text(st.characters(exclude_categories=["Cs"]))
both_algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


def test_the_special_tokens_have_their_usual_ids() -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=SUBWORDS.model)
    ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
    assert ids == (PAD, START, END, UNKNOWN)


@given(st.lists(st.sampled_from(" ".join(LINES).split())).map(" ".join))
def test_decode_equals_the_decoding_of_sentencepiece(text: str) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=SUBWORDS.model)
    ids = SUBWORDS.encode(text)
    assert SUBWORDS.decode(ids) == processor.decode(ids)


NORMALISING = [
    SubwordTokenizer.train(LINES, Preprocessing(Tags((), form)), 300, "bpe", byte_fallback=True)
    for form in ("none", "nfc", "nfkc")
]
letters_and_marks = st.text(st.sampled_from("aeA \n\tÅﬁ①각각\u0301\u0308\u0327\u0345"))


@given(st.lists(any_text | letters_and_marks, max_size=4), st.sampled_from(NORMALISING))
@example(["a\te"], NORMALISING[0])
@example(["a\ne", "a"], NORMALISING[1])
@example(["a", "\u0301e"], NORMALISING[1])
def test_a_list_is_encoded_like_each_of_its_texts(
    texts: list[str], tokenizer: SubwordTokenizer
) -> None:
    assert tokenizer.encode_all(texts) == [tokenizer.encode(text) for text in texts]
    assert [tokenizer.encode(text) for text in texts for _ in range(2)] == [
        ids for ids in tokenizer.encode_all(texts) for _ in range(2)
    ]


def test_changing_the_tokens_of_a_text_does_not_change_those_of_the_next_call() -> None:
    first = SUBWORDS.encode("the cat")
    expected = list(first)
    first.append(7)
    assert SUBWORDS.encode("the cat") == expected


def test_a_decoded_text_has_no_space_at_its_ends() -> None:
    space, cat = SUBWORDS.pieces(range(SUBWORDS.size)).index("▁"), SUBWORDS.encode("the cat")
    assert SUBWORDS.decode([space, *cat, space]) == "the cat"
    assert SUBWORDS.word_of([space, *cat, space]) == [0, 0, 1, -1]


def test_only_white_space_is_normalised() -> None:
    assert SUBWORDS.decode(SUBWORDS.encode("  the \t cat  ")) == "the cat"
    wide = SubwordTokenizer.train(["ﬁne ① Å a b"], PLAIN, 14, "bpe")
    assert wide.decode(wide.encode("ﬁne ① Å")) == "ﬁne ① Å"


@both_algorithms
def test_little_text_yields_fewer_pieces_than_the_recipe_asks_for(algorithm: Algorithm) -> None:
    small = SubwordTokenizer.train(LINES, PLAIN, 5_000, algorithm)
    assert len(set("".join(LINES))) < small.size < 5_000
    assert small.decode(small.encode(LINES[0])) == LINES[0]


def test_an_error_while_lines_are_read_keeps_its_type() -> None:
    def lines() -> Iterator[str]:
        yield from LINES
        raise DataError("line 3 is damaged")

    with pytest.raises(DataError, match="line 3 is damaged"):
        SubwordTokenizer.train(lines(), PLAIN, 60, "bpe")


@both_algorithms
def test_a_vocabulary_that_is_too_small_for_the_characters_is_rejected(
    algorithm: Algorithm,
) -> None:
    with pytest.raises(ConfigError, match=r"of 6 subwords is too small: .* need \d+ subwords"):
        SubwordTokenizer.train(LINES, PLAIN, 6, algorithm)


def test_half_of_a_surrogate_pair_is_rejected() -> None:
    with pytest.raises(DataError, match="is not valid Unicode"):
        SUBWORDS.encode("the \ud800")


@both_algorithms
def test_a_vocabulary_without_room_for_the_bytes_is_rejected(algorithm: Algorithm) -> None:
    message = (
        r"of 262 subwords is too small: the 256 bytes of text\.byte_fallback, .* need \d+ subwords; "
        r"set text\.tokenizer\.size .* well above that, or set text\.byte_fallback = false"
    )
    with pytest.raises(ConfigError, match=message):
        SubwordTokenizer.train(LINES, PLAIN, 262, algorithm, byte_fallback=True)


@pytest.mark.parametrize("tokenizer", WITH_BYTES.values(), ids=WITH_BYTES)
@given(text=any_text | st.lists(st.sampled_from(["<0x41>", "<s>", "the", "☃", " "])).map("".join))
def test_byte_fallback_restores_every_text(tokenizer: SubwordTokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert UNKNOWN not in ids
    spaces = re.sub("[ \t\n\r\v\f▁]+", " ", text).strip(" ")
    assert re.sub(" +", " ", tokenizer.decode(ids)).strip(" ") == spaces


@pytest.mark.parametrize("tokenizer", WITH_BYTES.values(), ids=WITH_BYTES)
@given(text=any_text)
def test_all_bytes_of_a_character_belong_to_the_same_word(
    tokenizer: SubwordTokenizer, text: str
) -> None:
    ids = tokenizer.encode(text)
    words = tokenizer.word_of(ids)
    assert len(words) == len(ids)
    for position, word in enumerate(tokenizer.decode(ids).split()):
        word_ids = [id_ for id_, index in zip(ids, words, strict=True) if index == position]
        assert tokenizer.decode(word_ids).strip() == word


@pytest.mark.parametrize("tokenizer", WITH_BYTES.values(), ids=WITH_BYTES)
@given(data=st.binary() | st.lists(st.sampled_from([b"\xe2\x98\x83", b"\xe2", b"a"])).map(b"".join))
def test_bytes_are_decoded_and_never_raise(tokenizer: SubwordTokenizer, data: bytes) -> None:
    names = tokenizer.pieces(range(tokenizer.size))
    ids = [names.index(f"<0x{byte:02X}>") for byte in data]
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    expected = re.sub("[\t\n\r\v\f]", " ", processor.decode(ids)).strip(" ")
    assert tokenizer.decode(ids) == expected
    assert len(tokenizer.word_of(ids)) == len(ids)


def test_a_byte_of_a_line_break_is_decoded_as_a_space() -> None:
    tokenizer = WITH_BYTES["bpe"]
    cat, newline = tokenizer.encode("cat"), tokenizer.pieces(range(tokenizer.size)).index("<0x0A>")
    assert tokenizer.decode([*cat, newline, *cat]) == "cat  cat"


def test_a_tag_that_is_the_name_of_a_byte_is_rejected() -> None:
    with pytest.raises(ConfigError, match="'<0x41>' is the name of a byte"):
        SubwordTokenizer.train(LINES, Preprocessing(Tags(["<0x41>"])), 400, "bpe", True)


@both_algorithms
def test_sampling_keeps_unknown_characters_as_bytes(algorithm: Algorithm) -> None:
    sampled = SampledSubwordTokenizer(WITH_BYTES[algorithm], 0.5, 0)
    assert sampled.decode(sampled.encode("the ☃ cat")) == "the ☃ cat"


def test_training_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    SubwordTokenizer.train(LINES, PLAIN, 25, "unigram")
    with pytest.raises(ConfigError):
        SubwordTokenizer.train(LINES, PLAIN, 6, "bpe")
    assert capfd.readouterr() == ("", "")
