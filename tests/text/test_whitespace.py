from hypothesis import given
from hypothesis import strategies as st

from seqloom.text.tags import Tags
from seqloom.text.vocabulary import UNKNOWN
from seqloom.text.whitespace import Whitespace

NO_TAGS = Tags(())


def learned(*lines: str, size: int = 1_000) -> Whitespace:
    return Whitespace.train(lines, NO_TAGS, False, size)


def test_labels_and_phones_stay_whole_whatever_they_are_made_of() -> None:
    text = "B-PER PRP$ t͡ʃ ˧˥ a̠ː do n't ."
    tokenizer = learned(text)
    assert tokenizer.pieces(tokenizer.encode(text)) == text.split()


@given(st.text(st.characters(exclude_characters="￭", exclude_categories=["Cs"])))
def test_any_known_text_comes_back_but_for_its_white_space(text: str) -> None:
    tokenizer = learned(text)
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())
    assert len(tokenizer.encode(text)) == len(text.split())


def test_only_the_most_frequent_tokens_are_kept() -> None:
    tokenizer = learned("a a a b b c", size=6)
    assert tokenizer.decode(tokenizer.encode("c b a")) == "<unk> b a"


def test_a_token_that_holds_the_joiner_is_unknown_and_nothing_else_is_lost() -> None:
    tokenizer = learned("a b￭c d")
    assert tokenizer.encode("a b￭c d")[1] == UNKNOWN
    assert len(tokenizer.encode("a b￭c d")) == 3
