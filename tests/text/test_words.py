"""The word tokenizer."""

from hypothesis import given
from hypothesis import strategies as st

from seqloom.text.preprocessing import Preprocessing
from seqloom.text.vocabulary import UNKNOWN
from seqloom.text.words import WordTokenizer, split_words

PLAIN = Preprocessing()


def pieces(text: str) -> list[str]:
    return list(split_words(text, PLAIN))


def test_punctuation_marks_carry_the_joiner_and_words_do_not() -> None:
    assert pieces('He said: "Don\'t go!"') == [
        *("He", "said", "￭:", '"￭', "Don't", "go", "￭!", '￭"')
    ]
    assert pieces("Peut-être (oui).") == ["Peut", "￭-￭", "être", "(￭", "oui", "￭)", "￭."]


def test_vowel_signs_stay_with_their_letters() -> None:
    assert pieces("नमस्ते दुनिया") == ["नमस्ते", "दुनिया"]


@given(st.text(st.characters(exclude_characters="￭", exclude_categories=["Cs"])))
def test_text_of_known_words_is_restored_except_for_runs_of_white_space(text: str) -> None:
    tokenizer = WordTokenizer.train([text], PLAIN, size=1_000, min_count=1)
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())


def test_only_the_most_frequent_words_are_kept() -> None:
    tokenizer = WordTokenizer.train(["a a a b b c"], PLAIN, size=6, min_count=1)
    assert tokenizer.size == 6
    assert tokenizer.decode(tokenizer.encode("c b a")) == "<unk> b a"


def test_the_joiner_itself_is_unknown() -> None:
    tokenizer = WordTokenizer.train(["a ￭ b￭c ."], PLAIN, size=100, min_count=1)
    assert tokenizer.encode("￭") == [UNKNOWN]
