"""Merging attention between subwords into attention between words."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite
from numpy.typing import NDArray

from seqloom.metrics.alignment import align_words
from seqloom.metrics.subword_merging import NO_WORD, group_positions, merge_labels, merge_words

Case = tuple[NDArray[np.float64], list[int], list[int]]
"""Attention, word indices of the target positions, word indices of the source positions."""


@composite
def word_indices(draw: DrawFn, max_words: int = 9) -> list[int]:
    """Word index of each position: words in order, with some positions that belong to none."""
    sizes = draw(
        st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=max_words)
    )
    indices: list[int] = []
    for word, (size, gap_follows) in enumerate(sizes):
        indices += [word] * size + [NO_WORD] * gap_follows
    return indices


@composite
def cases(draw: DrawFn) -> Case:
    """Attention of two layers with three heads each; rows sum to 1."""
    targets, sources = draw(word_indices()), draw(word_indices())
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    raw = generator.exponential(size=(len(targets), 2, 3, len(sources)))
    return raw / raw.sum(axis=-1, keepdims=True), targets, sources


@given(cases())
def test_merged_rows_sum_to_one(case: Case) -> None:
    merged = merge_words(*case)
    assert merged.shape[1:3] == (2, 3)
    np.testing.assert_allclose(merged.sum(axis=-1), 1)
    assert (merged >= 0).all()


@given(cases())
def test_total_attention_to_each_source_word_is_preserved(case: Case) -> None:
    """It is the sum of the attention to its subwords, over all target positions."""
    attention, targets, sources = case
    merged = merge_words(attention, targets, sources)
    sizes = np.array([len(group) for group in group_positions(targets)])
    totals = np.einsum("t,tlhs->lhs", sizes, merged)
    for column, group in enumerate(group_positions(sources)):
        subwords = attention[..., list(group)].sum(axis=(0, -1))
        np.testing.assert_allclose(totals[..., column], subwords)


@given(cases())
def test_merging_commutes_with_averaging_over_heads(
    case: Case,
) -> None:
    attention, targets, sources = case
    merged_first = merge_words(attention, targets, sources).mean(axis=(1, 2))
    averaged_first = merge_words(attention.mean(axis=(1, 2)), targets, sources)
    np.testing.assert_allclose(merged_first, averaged_first)


@given(cases())
def test_merging_changes_nothing_if_every_subword_is_a_word(
    case: Case,
) -> None:
    attention, targets, sources = case
    merged = merge_words(attention, range(len(targets)), range(len(sources)))
    np.testing.assert_allclose(merged, attention)


@given(cases())
def test_alignment_links_the_largest_weight_of_each_merged_row(
    case: Case,
) -> None:
    attention, targets, sources = case[0].mean(axis=(1, 2)), case[1], case[2]
    merged = merge_words(attention, targets, sources)
    columns = [sources[group[0]] for group in group_positions(sources)]
    shown = np.where(np.array(columns) == NO_WORD, -1, merged)
    rows = {
        targets[group[0]]: row for row, group in zip(shown, group_positions(targets), strict=True)
    }
    for source, target in align_words(attention, targets, sources):
        assert columns[int(rows[target].argmax())] == source


def test_merging_averages_target_subwords_and_sums_source_subwords() -> None:
    attention = [[0.5, 0.2, 0.3], [0.1, 0.4, 0.5], [0.0, 0.0, 1.0]]
    merged = merge_words(attention, [0, 0, NO_WORD], [0, 0, NO_WORD])
    np.testing.assert_allclose(merged, [[0.6, 0.4], [0.0, 1.0]])


def test_labels_are_the_words_of_the_text() -> None:
    pieces = ["▁ge", "fäll", "t", "▁mir", "</s>"]
    assert merge_labels(pieces, [0, 0, 0, 1, NO_WORD], "gefällt mir") == ("gefällt", "mir", "</s>")
