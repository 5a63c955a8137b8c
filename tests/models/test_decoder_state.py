"""Search selects rows of a decoder state and never reads them."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from seqloom.models.interface import NoRows, State


@dataclass(frozen=True)
class RowTensors:
    """The smallest state that implements `Rows`."""

    tensors: tuple[Tensor, ...]

    def select(self, rows: Tensor) -> "RowTensors":
        return RowTensors(tuple(one.index_select(0, rows) for one in self.tensors))


def test_selecting_hypotheses_keeps_sources_and_position() -> None:
    state = State(RowTensors((torch.arange(2),)), RowTensors((torch.arange(6),)), position=3)
    chosen = state.select(torch.tensor([5, 0, 0, 1]))
    assert chosen.moving.tensors[0].tolist() == [5, 0, 0, 1]
    assert chosen.fixed is state.fixed
    assert chosen.position == 3
    assert state.moving.tensors[0].tolist() == list(range(6))


def test_keeping_sources_keeps_hypotheses_and_position() -> None:
    state = State(RowTensors((torch.arange(3),)), RowTensors((torch.arange(6),)), position=2)
    kept = state.keep_sources(torch.tensor([2, 0]))
    assert kept.fixed.tensors[0].tolist() == [2, 0]
    assert kept.moving is state.moving
    assert kept.position == 2


@pytest.mark.parametrize("rows", [[], [0], [1, 1, 0]])
def test_an_empty_state_has_no_rows_to_select(rows: list[int]) -> None:
    empty = NoRows()
    assert empty.select(torch.tensor(rows, dtype=torch.long)) is empty
