"""Between words there is as much attention as there was between their pieces."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite
from numpy.typing import NDArray

from seqloom.metrics.alignment import align_words
from seqloom.metrics.merging import NO_WORD, groups_of, merge_labels, merge_words


@composite
def words(draw: DrawFn, most: int = 9) -> list[int]:
    """Which word each position is part of: words in order, here and there a position of none."""
    sizes = draw(st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=most))
    found: list[int] = []
    for number, (size, alone) in enumerate(sizes):
        found += [number] * size + [NO_WORD] * alone
    return found


@composite
def cases(draw: DrawFn) -> tuple[NDArray[np.float64], list[int], list[int]]:
    """Attention with rows that add up to 1, of two layers of three heads each."""
    targets, sources = draw(words()), draw(words())
    noise = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    raw = noise.exponential(size=(len(targets), 2, 3, len(sources)))
    return raw / raw.sum(axis=-1, keepdims=True), targets, sources


@given(cases())
def test_rows_still_add_up_to_one(case: tuple[NDArray[np.float64], list[int], list[int]]) -> None:
    merged = merge_words(*case)
    assert merged.shape[1:3] == (2, 3)
    np.testing.assert_allclose(merged.sum(axis=-1), 1)
    assert (merged >= 0).all()


@given(cases())
def test_masses_are_conserved(case: tuple[NDArray[np.float64], list[int], list[int]]) -> None:
    """What a source word gets from all rows is what its pieces got: nothing is lost, nothing made."""
    attention, targets, sources = case
    merged = merge_words(attention, targets, sources)
    sizes = np.array([len(group) for group in groups_of(targets)])
    got = np.einsum("t,tlhs->lhs", sizes, merged)
    for column, group in enumerate(groups_of(sources)):
        pieces = attention[..., list(group)].sum(axis=(0, -1))
        np.testing.assert_allclose(got[..., column], pieces)


@given(cases())
def test_merging_and_averaging_over_heads_go_in_any_order(
    case: tuple[NDArray[np.float64], list[int], list[int]],
) -> None:
    attention, targets, sources = case
    one = merge_words(attention, targets, sources).mean(axis=(1, 2))
    other = merge_words(attention.mean(axis=(1, 2)), targets, sources)
    np.testing.assert_allclose(one, other)


@given(cases())
def test_where_every_piece_is_a_word_nothing_changes(
    case: tuple[NDArray[np.float64], list[int], list[int]],
) -> None:
    attention = case[0]
    every = merge_words(attention, range(len(case[1])), range(len(case[2])))
    np.testing.assert_allclose(every, attention)


@given(cases())
def test_words_are_aligned_by_what_is_shown_of_them(
    case: tuple[NDArray[np.float64], list[int], list[int]],
) -> None:
    """The darkest cell of a word's row, among the words, is its link."""
    attention, targets, sources = case[0].mean(axis=(1, 2)), case[1], case[2]
    merged = merge_words(attention, targets, sources)
    columns = [sources[group[0]] for group in groups_of(sources)]
    shown = np.where(np.array(columns) == NO_WORD, -1, merged)
    rows = {targets[group[0]]: row for row, group in zip(shown, groups_of(targets), strict=True)}
    for source, target in align_words(attention, targets, sources):
        assert columns[int(rows[target].argmax())] == source


def test_the_pieces_of_a_word_look_on_average_and_are_looked_at_together() -> None:
    attention = [[0.5, 0.2, 0.3], [0.1, 0.4, 0.5], [0.0, 0.0, 1.0]]
    merged = merge_words(attention, [0, 0, NO_WORD], [0, 0, NO_WORD])
    np.testing.assert_allclose(merged, [[0.6, 0.4], [0.0, 1.0]])


def test_words_are_called_as_they_stand_in_the_text() -> None:
    pieces = ["▁ge", "fäll", "t", "▁mir", "</s>"]
    assert merge_labels(pieces, [0, 0, 0, 1, NO_WORD], "gefällt mir") == ("gefällt", "mir", "</s>")
