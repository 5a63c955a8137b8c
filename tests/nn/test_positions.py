"""What tells a network where a token stands."""

from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.nn.positions import (
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
calm = settings(deadline=None)


def table_of(kind: Kind, join: Join, width: int, max_length: int) -> PositionTable:
    match kind:
        case "sinusoidal":
            return SinusoidalPositions(join, width)
        case "one-hot":
            return OneHotPositions(join, width, max_length)
        case "learned":
            return LearnedPositions(join, width, max_length)


@calm
@given(
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(0, 200),
)
def test_the_product_of_turned_vectors_depends_only_on_their_distance(
    seed: int, pairs: int, first: int, second: int, shift: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, 1, 1, 1, 2 * pairs, generator=generator, dtype=torch.float64)
    here = rotate(query, first) * rotate(key, second)
    there = rotate(query, first + shift) * rotate(key, second + shift)
    torch.testing.assert_close(here.sum(), there.sum())


def test_turning_keeps_lengths_and_changes_with_the_position() -> None:
    vectors = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    turned = rotate(vectors, 4)
    torch.testing.assert_close(turned.norm(dim=-1), vectors.norm(dim=-1))
    torch.testing.assert_close(rotate(vectors, 0)[:, :, 0], vectors[:, :, 0])
    same = rotate(vectors[:, :, :1].expand(-1, -1, 5, -1), 0)
    distances = torch.cdist(same, same)[:, :, ~torch.eye(5, dtype=torch.bool)]
    assert float(distances.min()) > 0.1
    # A position alone is turned as it is among others.
    torch.testing.assert_close(rotate(vectors[:, :, 2:3], 6), turned[:, :, 2:3])


def test_a_number_without_a_partner_cannot_be_turned() -> None:
    with pytest.raises(AssertionError, match="pairs"):
        rotate(torch.randn(1, 1, 2, 3), 0)


@calm
@given(st.integers(1, 33), st.integers(0, 99))
def test_sines_may_be_of_any_width_even_or_odd(width: int, position: int) -> None:
    row = sinusoid(torch.tensor([position]), width)
    assert row.shape == (1, width)
    pairs = row[:, : width // 2 * 2].unflatten(1, (-1, 2))
    torch.testing.assert_close(pairs.square().sum(-1), torch.ones(1, width // 2).double())


@pytest.mark.parametrize("kind", KINDS)
@calm
@given(length=st.integers(1, 5), offset=st.integers(0, 5), extra=st.integers(0, 3))
def test_positions_are_added_or_appended_and_start_at_the_offset(
    kind: Kind, length: int, offset: int, extra: int
) -> None:
    vectors, width = torch.randn(2, length, 12), 10 + extra
    appended = table_of(kind, "append", width, max_length=10)
    rows = appended.rows(torch.arange(offset, offset + length)).to(vectors.dtype)
    assert appended.widened(12) == 12 + width
    found = appended(vectors, offset)
    assert torch.equal(found, torch.cat((vectors, rows.expand(2, -1, -1)), -1))

    added = table_of(kind, "add", 12, max_length=10)
    rows = added.rows(torch.arange(offset, offset + length)).to(vectors.dtype)
    assert added.widened(12) == 12
    assert torch.equal(added(vectors, offset), vectors + rows)


def test_a_one_hot_position_is_a_unit_vector() -> None:
    rows = OneHotPositions("append", 4, 4).rows(torch.arange(4))
    assert torch.equal(rows, torch.eye(4, dtype=torch.long))


def test_learned_positions_learn_one_row_each() -> None:
    table = LearnedPositions("add", 3, max_length=5)
    table(torch.zeros(2, 2, 3), place=1).sum().backward()
    gradient = table.table.weight.grad
    assert gradient is not None
    assert gradient.sum(-1).tolist() == [0, 6, 6, 0, 0]


def test_no_positions_change_nothing_and_have_no_end() -> None:
    vectors = torch.randn(2, 3, 4)
    assert torch.equal(Positions()(vectors, 7), vectors)
    assert Positions().widened(4) == 4
    assert Positions().max_length is None
    assert SinusoidalPositions("add", 4).max_length is None
    assert LearnedPositions("add", 4, 9).max_length == 9
    assert OneHotPositions("add", 9, 9).max_length == 9
