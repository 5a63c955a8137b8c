"""Alignments from attention, and their written form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError
from seqloom.metrics.alignment import align_words, format_pharaoh, parse_pharaoh

pairs = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=9)


@given(pairs)
def test_what_is_written_is_read_again(alignment: list[tuple[int, int]]) -> None:
    assert parse_pharaoh(format_pharaoh(alignment)) == alignment


def test_the_written_form_is_pharaohs() -> None:
    assert format_pharaoh([(0, 0), (1, 2)]) == "0-0 1-2"
    assert format_pharaoh([]) == ""
    assert parse_pharaoh(" 0-0  1-2\n") == [(0, 0), (1, 2)]


def test_what_is_no_alignment_is_refused_and_all_of_it_is_named() -> None:
    with pytest.raises(DataError) as caught:
        parse_pharaoh("0-0 1 2-x -1-3 4-5-6 ²-1")
    assert str(caught.value) == (
        "not an alignment: '1', '2-x', '-1-3', '4-5-6', '²-1'; "
        "write source-target pairs such as 0-0 1-2"
    )


@given(st.permutations(range(6)))
def test_sharp_attention_is_its_own_alignment(order: list[int]) -> None:
    attention = np.eye(6)[order]
    expected = [(source, target) for target, source in enumerate(order)]
    assert align_words(attention, list(range(6)), list(range(6))) == expected


def test_the_pieces_of_a_word_look_and_are_looked_at_together() -> None:
    """No piece of source word 1 gets the most, but both together do."""
    attention = [[0.4, 0.3, 0.3], [0.8, 0.1, 0.1], [0.0, 0.4, 0.6]]
    assert align_words(attention, [0, 1, 1], [0, 1, 1]) == [(1, 0), (1, 1)]
    assert align_words(attention, [0, 1, 2], [0, 1, 1]) == [(1, 0), (0, 1), (1, 2)]


def test_positions_of_no_word_are_left_out() -> None:
    attention = [[0.9, 0.1, 0.0], [0.5, 0.2, 0.3], [0.2, 0.2, 0.6]]
    assert align_words(attention, [0, 1, -1], [-1, 0, 1]) == [(0, 0), (1, 1)]
    assert align_words(attention, [-1, -1, -1], [0, 1, 2]) == []
    assert align_words(attention, [0, 1, 2], [-1, -1, -1]) == []


def test_without_words_there_is_nothing_to_align() -> None:
    assert align_words(np.zeros((0, 3)), [], [0, 1, 2]) == []
    assert align_words(np.zeros((2, 0)), [0, 1], []) == []
