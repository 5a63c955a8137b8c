"""A quick map is the same map."""

import copy

import pytest
import torch

from seqloom.nn.linear import FEW, Linear


@pytest.mark.parametrize("rows", [1, 5, FEW, FEW + 1])
def test_it_computes_what_every_linear_map_computes(rows: int) -> None:
    layer, states = Linear(6, 9).double(), torch.randn(rows, 6).double()
    expected = states @ layer.weight.T + layer.bias
    assert expected.requires_grad
    torch.testing.assert_close(layer(states), expected)
    with torch.no_grad():
        torch.testing.assert_close(layer(states), expected.detach())
        torch.testing.assert_close(layer(states.unsqueeze(1)), expected.detach().unsqueeze(1))
    for learned in (True, False):
        with torch.inference_mode():
            torch.testing.assert_close(layer.requires_grad_(learned)(states), expected)


@pytest.mark.parametrize("learned", [True, False])
def test_it_follows_its_weights_wherever_they_go(learned: bool) -> None:
    layer, states = Linear(6, 9).requires_grad_(learned), torch.randn(2, 6)

    def holds() -> bool:
        with torch.no_grad():
            return torch.allclose(layer(states), states @ layer.weight.T + layer.bias, atol=1e-6)

    assert holds()
    if learned:  # a fused optimiser changes weights without a trace
        optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
        layer(states).square().sum().backward()
        optimizer.step()
        assert holds()
    layer.load_state_dict(Linear(6, 9).state_dict())
    assert holds()
    layer.load_state_dict(Linear(6, 9).state_dict(), assign=True)
    assert holds()
    layer.weight = torch.nn.Parameter(torch.randn(9, 6))
    assert holds()
    with torch.no_grad():
        layer.weight.mul_(2)
    assert holds()
    layer.double().float()
    assert holds()


def test_a_copy_has_weights_of_its_own_and_nothing_more_is_saved() -> None:
    layer, states = Linear(6, 9).requires_grad_(False), torch.randn(2, 6)
    with torch.no_grad():
        before = layer(states)
        other = copy.deepcopy(layer)
        other.weight.zero_()
        other.bias.zero_()
        assert other(states).abs().max() == 0
        assert torch.equal(layer(states), before)
    assert set(layer.state_dict()) == {"weight", "bias"}
