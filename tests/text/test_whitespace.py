"""The tokenizer that splits at white space."""

from hypothesis import given
from hypothesis import strategies as st

from seqloom.text.preprocessing import Preprocessing
from seqloom.text.vocabulary import UNKNOWN
from seqloom.text.words import WhitespaceTokenizer

PLAIN = Preprocessing()


def train(*lines: str, size: int = 1_000) -> WhitespaceTokenizer:
    return WhitespaceTokenizer.train(lines, PLAIN, size)


def test_tokens_are_never_split_further() -> None:
    text = "B-PER PRP$ t͡ʃ ˧˥ a̠ː do n't ."
    tokenizer = train(text)
    assert tokenizer.pieces(tokenizer.encode(text)) == text.split()


@given(st.text(st.characters(exclude_characters="￭", exclude_categories=["Cs"])))
def test_known_text_is_restored_except_for_runs_of_white_space(text: str) -> None:
    tokenizer = train(text)
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())
    assert len(tokenizer.encode(text)) == len(text.split())


def test_only_the_most_frequent_tokens_are_kept() -> None:
    tokenizer = train("a a a b b c", size=6)
    assert tokenizer.decode(tokenizer.encode("c b a")) == "<unk> b a"


def test_only_a_token_that_contains_the_joiner_is_unknown() -> None:
    tokenizer = train("a b￭c d")
    assert tokenizer.encode("a b￭c d")[1] == UNKNOWN
    assert len(tokenizer.encode("a b￭c d")) == 3
