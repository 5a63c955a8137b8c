"""A quick map is the same map."""

import copy

import pytest
import torch

from seqloom.nn.linear import FEW, FEW_ALONE, FEWER, MANY, Kept, Linear, linear


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


@pytest.mark.parametrize("shape", [(MANY - 1,), (MANY,), (MANY, 3), (7, MANY // 4, 2)])
@pytest.mark.parametrize("asked", [True, False], ids=["inside", "first layer"])
def test_many_rows_learn_what_they_would_learn_anyway(shape: tuple[int, ...], asked: bool) -> None:
    states = torch.randn(*shape, 6, dtype=torch.float64, requires_grad=asked)
    layer = Linear(6, 9).double()
    gradient = torch.randn(*shape, 9, dtype=torch.float64)
    wanted = [layer.weight, layer.bias, *([states] if asked else [])]
    ours, theirs = layer(states), torch.nn.functional.linear(states, layer.weight, layer.bias)
    torch.testing.assert_close(ours, theirs)
    for one, other in zip(
        torch.autograd.grad(ours, wanted, gradient),
        torch.autograd.grad(theirs, wanted, gradient),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_many_rows_in_half_precision_are_torchs() -> None:
    layer, states = Linear(6, 9), torch.randn(MANY, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mapped = linear(states, layer.weight, layer.bias)
    assert mapped.dtype == torch.bfloat16
    mapped.float().sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize(
    ("width", "wanted"), [(1, 1), (33, 17), (256, 256), (64, 1000), (1024, 64)]
)
def test_one_layout_serves_any_number_of_rows(width: int, wanted: int) -> None:
    layer = Linear(width, wanted).requires_grad_(False)
    with torch.inference_mode():
        for rows in (1, 2, 5, FEWER, FEWER + 1, FEW_ALONE, FEW_ALONE + 1, FEW, FEW + 1):
            states = torch.randn(rows, width)
            exact = states.double() @ layer.weight.double().T + layer.bias.double()
            torch.testing.assert_close(layer(states).double(), exact, atol=1e-4, rtol=1e-4)


def test_gradients_pass_through_a_map_that_learns_nothing() -> None:
    layer, states = Linear(6, 9).requires_grad_(False), torch.randn(2, 6)
    with torch.inference_mode():
        layer(states)  # what is made here serves outside, too
    states.requires_grad_()
    layer(states).sum().backward()
    assert states.grad is not None
    torch.testing.assert_close(states.grad, layer.weight.sum(dim=0).expand(2, -1))


@pytest.mark.parametrize("rows", [1, 5, FEW + 1])
def test_several_maps_of_the_same_states_are_one(rows: int) -> None:
    parts, states, kept = [Linear(6, 9) for _ in range(3)], torch.randn(rows, 6), Kept()
    assert kept.layout(parts) is None, "somebody may be learning them"
    for part in parts:
        part.requires_grad_(False)
    layout = kept.layout(parts)
    assert layout is not None
    assert kept.layout(parts) is layout
    side_by_side = torch.cat([part(states) for part in parts], dim=1)
    torch.testing.assert_close(layout(states), side_by_side)
    parts[1].bias.add_(1)
    changed = kept.layout(parts)
    assert changed is not None
    torch.testing.assert_close(changed(states)[:, 9:18], side_by_side[:, 9:18] + 1)
    parts[2].requires_grad_(True)
    assert kept.layout(parts) is None


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
    layer.requires_grad_(False)
    assert holds()
    layer.weight.data = torch.randn(9, 6)  # the same tensor, with its numbers elsewhere
    assert holds()


def test_weights_that_were_made_for_inference_are_used_as_they_are() -> None:
    """They do not tell whether they were changed."""
    with torch.inference_mode():
        layer, states = Linear(6, 9).requires_grad_(False), torch.randn(2, 6)
        assert torch.allclose(layer(states), states @ layer.weight.T + layer.bias, atol=1e-6)
        layer.weight.zero_()
        assert torch.allclose(layer(states), layer.bias.expand(2, -1))


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
