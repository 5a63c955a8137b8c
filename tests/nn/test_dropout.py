"""Dropout drops entries at its rate and keeps the mean."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.nn.dropout import Dropout, LockedDropout

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_entries_are_dropped_at_the_rate_and_the_mean_stays(rate: float) -> None:
    ones = torch.ones(1000, 1000, dtype=torch.float64)
    dropped = Dropout(rate)(ones)
    share = float((dropped == 0).double().mean())
    spread = (rate * (1 - rate) / ones.numel()) ** 0.5
    assert share == pytest.approx(rate, abs=6 * spread)
    assert sorted(dropped.unique().tolist()) == pytest.approx([0, 1 / (1 - rate)], rel=1e-4)
    assert float(dropped.mean()) == pytest.approx(1, abs=6 * spread / (1 - rate))


def test_neighbouring_entries_are_dropped_independently() -> None:
    """Four entries share a draw of 64 bits, but no two of them share a bit."""
    kept = (Dropout(0.5)(torch.ones(400_000)) > 0).double().view(-1, 4)
    correlations = torch.corrcoef(kept.T) - torch.eye(4)
    assert float(correlations.abs().max()) < 6 / len(kept) ** 0.5


@given(shape=SHAPES)
def test_the_shape_is_kept_and_the_gradient_has_the_same_mask(shape: tuple[int, ...]) -> None:
    states = torch.ones(shape, requires_grad=True)
    dropped = Dropout(0.5)(states)
    assert dropped.shape == shape
    dropped.sum().backward()
    assert states.grad is not None
    assert torch.equal(states.grad, dropped.detach())


def test_the_same_seed_gives_the_same_mask() -> None:
    def draw() -> torch.Tensor:
        torch.manual_seed(5)
        return Dropout(0.3)(torch.ones(50))

    assert torch.equal(draw(), draw())


def test_nothing_is_dropped_at_rate_zero_or_in_evaluation() -> None:
    states = torch.randn(3, 4)
    assert Dropout(0.0)(states) is states
    assert Dropout(0.5).eval()(states) is states


def test_locked_dropout_has_one_mask_per_row_for_all_positions() -> None:
    ones = torch.ones(64, 7, 50)
    dropped = LockedDropout(0.5)(ones)
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert not torch.equal(dropped[0], dropped[1])
    assert float((dropped == 0).double().mean()) == pytest.approx(0.5, abs=0.06)
    assert sorted(dropped.unique().tolist()) == pytest.approx([0, 2], rel=1e-4)
    assert LockedDropout(0.5).eval()(ones) is ones
