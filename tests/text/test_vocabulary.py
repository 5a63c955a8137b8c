"""The vocabulary: ids, pieces and their order."""

from hypothesis import given
from hypothesis import strategies as st

from seqloom.text.vocabulary import SPECIAL_TOKENS, UNKNOWN, Vocabulary

piece_counts = st.dictionaries(st.text(min_size=1), st.integers(1, 3))


@given(piece_counts)
def test_ids_and_pieces_are_inverse(counts: dict[str, int]) -> None:
    vocabulary = Vocabulary.from_counts(counts, ("<U>",))
    assert len(vocabulary) == len(SPECIAL_TOKENS) + len(counts.keys() | {"<U>"})
    assert all(vocabulary.piece(vocabulary.id(piece)) == piece for piece in counts)
    assert vocabulary.id("<U>") == len(SPECIAL_TOKENS)


@given(piece_counts)
def test_ids_do_not_depend_on_the_order_of_counting(counts: dict[str, int]) -> None:
    in_reverse = dict(reversed(counts.items()))
    assert Vocabulary.from_counts(counts).pieces == Vocabulary.from_counts(in_reverse).pieces


def test_frequent_pieces_come_first_and_rare_ones_are_unknown() -> None:
    vocabulary = Vocabulary.from_counts(
        {"rare": 1, "b": 5, "a": 5, "often": 9}, size=7, min_count=2
    )
    assert vocabulary.pieces == (*SPECIAL_TOKENS, "often", "a", "b")
    assert vocabulary.id("rare") == UNKNOWN


def test_the_name_of_a_special_token_is_ordinary_text() -> None:
    assert Vocabulary(()).id("<s>") == UNKNOWN


def test_pieces_below_the_minimum_count_are_left_out() -> None:
    counts = {"a": 3, "b": 2, "c": 1}
    for min_count, kept in ((1, "abc"), (2, "ab"), (3, "a"), (4, "")):
        vocabulary = Vocabulary.from_counts(counts, min_count=min_count)
        assert vocabulary.pieces[len(SPECIAL_TOKENS) :] == tuple(kept)
