"""Positions: rotary, sinusoidal, one-hot and learned."""

import math
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.nn.positions import (
    Frequencies,
    Join,
    LearnedPositions,
    OneHotPositions,
    Positions,
    PositionTable,
    SinusoidalPositions,
    rotate,
    sinusoid,
)

Kind = Literal["sinusoidal", "one-hot", "learned"]
KINDS: list[Kind] = ["sinusoidal", "one-hot", "learned"]
no_deadline = settings(deadline=None)


def build_table(kind: Kind, join: Join, width: int, max_length: int) -> PositionTable:
    match kind:
        case "sinusoidal":
            return SinusoidalPositions(join, width)
        case "one-hot":
            return OneHotPositions(join, width, max_length)
        case "learned":
            return LearnedPositions(join, width, max_length)


@no_deadline
@given(
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(0, 200),
)
def test_the_product_of_rotated_vectors_depends_only_on_their_distance(
    seed: int, pairs: int, first: int, second: int, shift: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, 1, 1, 1, 2 * pairs, generator=generator, dtype=torch.float64)
    products = rotate(query, first) * rotate(key, second)
    shifted = rotate(query, first + shift) * rotate(key, second + shift)
    torch.testing.assert_close(products.sum(), shifted.sum())


def test_rotation_keeps_norms_and_changes_with_the_position() -> None:
    vectors = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    rotated = rotate(vectors, 4)
    torch.testing.assert_close(rotated.norm(dim=-1), vectors.norm(dim=-1))
    torch.testing.assert_close(rotate(vectors, 0)[:, :, 0], vectors[:, :, 0])
    same = rotate(vectors[:, :, :1].expand(-1, -1, 5, -1), 0)
    distances = torch.cdist(same, same)[:, :, ~torch.eye(5, dtype=torch.bool)]
    assert float(distances.min()) > 0.1
    # A single position is rotated as in the sequence.
    torch.testing.assert_close(rotate(vectors[:, :, 2:3], 6), rotated[:, :, 2:3])


def test_rotation_of_an_odd_width_is_rejected() -> None:
    with pytest.raises(AssertionError, match="pairs"):
        rotate(torch.randn(1, 1, 2, 3), 0)


@no_deadline
@given(st.integers(1, 33), st.integers(0, 99))
def test_sinusoids_have_any_width_even_or_odd(width: int, position: int) -> None:
    row = sinusoid(torch.tensor([position]), width)
    assert row.shape == (1, width)
    pairs = row[:, : width // 2 * 2].unflatten(1, (-1, 2))
    torch.testing.assert_close(pairs.square().sum(-1), torch.ones(1, width // 2).double())


@pytest.mark.parametrize("kind", KINDS)
@no_deadline
@given(length=st.integers(1, 5), offset=st.integers(0, 5), extra=st.integers(0, 3))
def test_positions_are_added_or_appended_starting_at_the_first_position(
    kind: Kind, length: int, offset: int, extra: int
) -> None:
    vectors, width = torch.randn(2, length, 12), 10 + extra
    appended = build_table(kind, "append", width, max_length=10)
    rows = appended.rows(torch.arange(offset, offset + length)).to(vectors.dtype)
    assert appended.output_width(12) == 12 + width
    output = appended(vectors, offset)
    assert torch.equal(output, torch.cat((vectors, rows.expand(2, -1, -1)), -1))

    added = build_table(kind, "add", 12, max_length=10)
    rows = added.rows(torch.arange(offset, offset + length)).to(vectors.dtype)
    assert added.output_width(12) == 12
    assert torch.equal(added(vectors, offset), vectors + rows)


def test_a_one_hot_position_is_a_unit_vector() -> None:
    rows = OneHotPositions("append", 4, 4).rows(torch.arange(4))
    assert torch.equal(rows, torch.eye(4, dtype=torch.long))


def test_each_learned_position_has_its_own_row() -> None:
    table = LearnedPositions("add", 3, max_length=5)
    table(torch.zeros(2, 2, 3), position_ids=1).sum().backward()
    gradient = table.table.weight.grad
    assert gradient is not None
    assert gradient.sum(-1).tolist() == [0, 6, 6, 0, 0]


def test_the_base_class_changes_nothing_and_max_lengths_are_known() -> None:
    vectors = torch.randn(2, 3, 4)
    assert torch.equal(Positions()(vectors, 7), vectors)
    assert Positions().output_width(4) == 4
    assert Positions().max_length is None
    assert SinusoidalPositions("add", 4).max_length is None
    assert LearnedPositions("add", 4, 9).max_length == 9
    assert OneHotPositions("add", 9, 9).max_length == 9


def test_positions_in_halves_equal_those_of_marian() -> None:
    """transformers, MarianSinusoidalPositionalEmbedding: sines, then cosines, k from 0."""
    width = 10
    expected = [
        [
            function(t / 10_000 ** (2 * k / width))
            for function in (math.sin, math.cos)
            for k in range(5)
        ]
        for t in range(7)
    ]
    positions = SinusoidalPositions("add", width, frequencies="vaswani", layout="halves")
    torch.testing.assert_close(positions.rows(torch.arange(7)), torch.tensor(expected).double())


def test_positions_of_fairseq_equal_those_of_m2m100() -> None:
    """transformers, M2M100SinusoidalPositionalEmbedding: the first token is at position 2."""
    width = 10
    expected = [
        [
            function(t * math.exp(-k * math.log(10_000) / 4))
            for function in (math.sin, math.cos)
            for k in range(5)
        ]
        for t in range(2, 9)
    ]
    positions = SinusoidalPositions("add", width, "fairseq", "halves", offset=2)
    torch.testing.assert_close(positions.rows(torch.arange(7)), torch.tensor(expected).double())


@no_deadline
@given(st.integers(1, 20), st.integers(0, 3), st.sampled_from(["lecture", "vaswani", "fairseq"]))
def test_both_layouts_hold_the_same_numbers_and_an_offset_shifts_them(
    width: int, offset: int, frequencies: Frequencies
) -> None:
    times = torch.arange(6)
    interleaved = SinusoidalPositions("add", 2 * width, frequencies, offset=offset).rows(times)
    halves = sinusoid(times + offset, 2 * width, frequencies, "halves")
    sines, cosines = halves.chunk(2, dim=-1)
    assert torch.equal(interleaved[:, 0::2], sines)
    assert torch.equal(interleaved[:, 1::2], cosines)


def test_a_rotation_is_counter_clockwise_by_the_position() -> None:
    """Su et al. 2021, equation 13: (cos m, sin m) is (1, 0), rotated by the angle m."""
    rotated = rotate(torch.tensor([1.0, 0.0]).expand(1, 1, 3, 2), 0)[0, 0]
    expected = [[math.cos(m), math.sin(m)] for m in range(3)]
    torch.testing.assert_close(rotated, torch.tensor(expected))
