from hypothesis import given
from hypothesis import strategies as st

from seqloom.text.vocabulary import SPECIAL, UNKNOWN, Vocabulary

counts = st.dictionaries(st.text(min_size=1), st.integers(1, 3))


@given(counts)
def test_ids_and_pieces_are_inverse(counted: dict[str, int]) -> None:
    vocabulary = Vocabulary.count(counted, ("<U>",))
    assert len(vocabulary) == len(SPECIAL) + len(counted.keys() | {"<U>"})
    assert all(vocabulary.piece(vocabulary.id(piece)) == piece for piece in counted)
    assert vocabulary.id("<U>") == len(SPECIAL)


@given(counts)
def test_the_order_of_reading_does_not_matter(counted: dict[str, int]) -> None:
    backwards = dict(reversed(counted.items()))
    assert Vocabulary.count(counted).pieces == Vocabulary.count(backwards).pieces


def test_frequent_pieces_come_first_and_rare_ones_are_unknown() -> None:
    vocabulary = Vocabulary.count({"rare": 1, "b": 5, "a": 5, "often": 9}, size=7, min_count=2)
    assert vocabulary.pieces == (*SPECIAL, "often", "a", "b")
    assert vocabulary.id("rare") == UNKNOWN


def test_the_name_of_a_special_token_is_only_text() -> None:
    assert Vocabulary(()).id("<s>") == UNKNOWN
