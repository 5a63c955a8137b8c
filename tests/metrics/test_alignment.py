"""Word alignments: from attention, symmetrised, and as text."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import ConfigError, DataError
from seqloom.metrics.alignment import (
    Link,
    Symmetrisation,
    align_by_agreement,
    align_words,
    format_pharaoh,
    format_soft,
    parse_pharaoh,
    parse_symmetrisation,
    symmetrise,
)

alignments = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=9)
link_sets = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(st.permutations(range(6)))
def test_one_hot_attention_gives_its_alignment(order: list[int]) -> None:
    attention = np.eye(6)[order]
    expected = [(source, target) for target, source in enumerate(order)]
    assert align_words(attention, list(range(6)), list(range(6))) == expected


def test_subwords_of_a_word_are_aligned_together() -> None:
    """No subword of source word 1 has the largest weight, but their sum is the largest."""
    attention = [[0.4, 0.3, 0.3], [0.8, 0.1, 0.1], [0.0, 0.4, 0.6]]
    assert align_words(attention, [0, 1, 1], [0, 1, 1]) == [(1, 0), (1, 1)]
    assert align_words(attention, [0, 1, 2], [0, 1, 1]) == [(1, 0), (0, 1), (1, 2)]


def test_positions_without_a_word_are_left_out() -> None:
    attention = [[0.9, 0.1, 0.0], [0.5, 0.2, 0.3], [0.2, 0.2, 0.6]]
    assert align_words(attention, [0, 1, -1], [-1, 0, 1]) == [(0, 0), (1, 1)]
    assert align_words(attention, [-1, -1, -1], [0, 1, 2]) == []
    assert align_words(attention, [0, 1, 2], [-1, -1, -1]) == []


def test_empty_texts_have_no_alignment() -> None:
    assert align_words(np.zeros((0, 3)), [], [0, 1, 2]) == []
    assert align_words(np.zeros((2, 0)), [0, 1], []) == []


def test_agreement_uses_the_product_of_both_directions() -> None:
    """By `forward` alone, the first target word is linked to source word 1."""
    forward, backward = [[0.4, 0.6], [0.1, 0.9]], [[0.9, 0.1], [0.2, 0.8]]
    assert align_by_agreement(forward, backward) == ([(0, 0), (1, 1)], [(0, 0), (1, 1)])
    assert align_by_agreement([], []) == ([], [])


@given(link_sets, link_sets)
def test_each_symmetrisation_contains_the_links_of_the_stricter_one(
    forward: frozenset[Link], backward: frozenset[Link]
) -> None:
    methods: list[Symmetrisation] = ["intersection", "grow-diag", "grow-diag-final", "union"]
    results = [set(symmetrise(forward, backward, method)) for method in methods]
    assert results[0] == forward & backward
    assert results[3] == forward | backward
    for smaller, larger in pairwise(results):
        assert smaller <= larger


@given(link_sets)
def test_symmetrisation_of_equal_alignments_changes_nothing(links: frozenset[Link]) -> None:
    for name in ("intersection", "grow-diag", "grow-diag-final", "union"):
        assert set(symmetrise(links, links, parse_symmetrisation(name))) == links


def test_grow_diag_adds_only_neighbours_that_link_a_new_word() -> None:
    forward, backward = [(0, 0), (1, 1), (4, 4)], [(0, 0), (0, 1), (1, 0)]
    assert symmetrise(forward, backward, "grow-diag") == [(0, 0), (1, 0), (0, 1)]
    assert symmetrise(forward, backward, "grow-diag-final") == [(0, 0), (1, 0), (0, 1), (4, 4)]


def test_unknown_symmetrisation_raises_an_error_that_lists_the_known_ones() -> None:
    message = "no symmetrisation 'and'; use one of intersection, union"
    with pytest.raises(ConfigError, match=message):
        parse_symmetrisation("and")


@given(alignments)
def test_parsing_inverts_formatting(alignment: list[Link]) -> None:
    assert parse_pharaoh(format_pharaoh(alignment)) == alignment


def test_alignments_are_written_in_pharaoh_format() -> None:
    assert format_pharaoh([(0, 0), (1, 2)]) == "0-0 1-2"
    assert format_pharaoh([]) == ""
    assert parse_pharaoh(" 0-0  1-2\n") == [(0, 0), (1, 2)]


def test_every_invalid_entry_of_an_alignment_is_reported() -> None:
    with pytest.raises(DataError) as caught:
        parse_pharaoh("0-0 1 2-x -1-3 4-5-6 ²-1")
    assert str(caught.value) == (
        "not an alignment: '1', '2-x', '-1-3', '4-5-6', '²-1'; "
        "write source-target pairs such as 0-0 1-2"
    )


def test_soft_alignment_lists_links_whose_rounded_weight_is_not_zero() -> None:
    text = format_soft([[0.93, 0.067], [0.004, 0.996]], [0, 1], [0, 1])
    assert text == "0-0:0.93 1-0:0.07 1-1:1.00"
