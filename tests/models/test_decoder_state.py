"""A state is moved about by search, which never looks inside it."""

import torch
from torch import Tensor

from seqloom.models.interface import State, select_rows


class Remembered:
    """A piece of state of a decoder's own kind."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows

    def select(self, rows: Tensor) -> "Remembered":
        return Remembered([self.rows[row] for row in rows.tolist()])


def test_selecting_rows_reaches_every_leaf_of_the_tree() -> None:
    numbers, vectors = torch.arange(4), torch.arange(8).view(4, 2)
    tree = (numbers, (None, vectors, (Remembered([10, 11, 12, 13]),)), ())
    first, (nothing, second, (third,)), empty = select_rows(tree, torch.tensor([3, 0, 3]))
    assert first.tolist() == [3, 0, 3]
    assert second.tolist() == [[6, 7], [0, 1], [6, 7]]
    assert third.rows == [13, 10, 13]
    assert nothing is None
    assert empty == ()


def test_selecting_hypotheses_leaves_the_sources_and_the_position_alone() -> None:
    state = State(fixed=torch.arange(2), moving=torch.arange(6), position=3)
    chosen = state.select(torch.tensor([5, 0, 0, 1]))
    assert chosen.moving.tolist() == [5, 0, 0, 1]
    assert chosen.fixed is state.fixed
    assert chosen.position == 3
    assert state.moving.tolist() == list(range(6))


def test_keeping_sources_leaves_the_hypotheses_and_the_position_alone() -> None:
    state = State(fixed=(torch.arange(3), None), moving=torch.arange(6), position=2)
    kept = state.keep_sources(torch.tensor([2, 0]))
    numbers, nothing = kept.fixed
    assert numbers.tolist() == [2, 0]
    assert nothing is None
    assert kept.moving is state.moving
    assert kept.position == 2
