"""Fast linear layers compute what torch.nn.Linear computes, and follow changes of their weights."""

import copy
import os
import subprocess
import sys

import pytest
import torch

from seqloom.nn.fast.dispatch import IS_ARM
from seqloom.nn.fast.linear import (
    MAX_PACKED_ROWS,
    MAX_PACKED_ROWS_ONE_THREAD,
    MAX_UNPACKED_ROWS,
    MIN_TRANSPOSED_ROWS,
    Linear,
    PackedLinearCache,
    joined_linear,
    linear,
)


@pytest.mark.parametrize("rows", [1, 5, MAX_PACKED_ROWS, MAX_PACKED_ROWS + 1])
def test_outputs_equal_those_of_a_plain_linear_layer(rows: int) -> None:
    layer, states = Linear(6, 9).double(), torch.randn(rows, 6).double()
    expected = states @ layer.weight.T + layer.bias
    assert expected.requires_grad
    torch.testing.assert_close(layer(states), expected)
    with torch.no_grad():
        torch.testing.assert_close(layer(states), expected.detach())
        torch.testing.assert_close(layer(states.unsqueeze(1)), expected.detach().unsqueeze(1))
    for needs_gradient in (True, False):
        with torch.inference_mode():
            torch.testing.assert_close(layer.requires_grad_(needs_gradient)(states), expected)


@pytest.mark.parametrize(
    "shape",
    [
        (MIN_TRANSPOSED_ROWS - 1,),
        (MIN_TRANSPOSED_ROWS,),
        (MIN_TRANSPOSED_ROWS, 3),
        (7, MIN_TRANSPOSED_ROWS // 4, 2),
    ],
)
@pytest.mark.parametrize("inputs_need_gradient", [True, False], ids=["inner layer", "first layer"])
def test_outputs_and_gradients_of_many_rows_equal_those_of_a_plain_linear_layer(
    shape: tuple[int, ...], inputs_need_gradient: bool
) -> None:
    states = torch.randn(*shape, 6, dtype=torch.float64, requires_grad=inputs_need_gradient)
    layer = Linear(6, 9).double()
    gradient = torch.randn(*shape, 9, dtype=torch.float64)
    leaves = [layer.weight, layer.bias, *([states] if inputs_need_gradient else [])]
    fast, plain = layer(states), torch.nn.functional.linear(states, layer.weight, layer.bias)
    torch.testing.assert_close(fast, plain)
    for fast_gradient, plain_gradient in zip(
        torch.autograd.grad(fast, leaves, gradient),
        torch.autograd.grad(plain, leaves, gradient),
        strict=True,
    ):
        torch.testing.assert_close(fast_gradient, plain_gradient)


def test_many_rows_under_autocast_use_the_plain_layer() -> None:
    layer, states = Linear(6, 9), torch.randn(MIN_TRANSPOSED_ROWS, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mapped = linear(states, layer.weight, layer.bias)
    assert mapped.dtype == torch.bfloat16
    mapped.float().sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize(
    ("width", "outputs"), [(1, 1), (33, 17), (256, 256), (64, 1000), (1024, 64)]
)
def test_outputs_are_right_for_any_number_of_rows(width: int, outputs: int) -> None:
    layer = Linear(width, outputs).requires_grad_(False)
    with torch.inference_mode():
        limits = (MAX_UNPACKED_ROWS, MAX_PACKED_ROWS_ONE_THREAD, MAX_PACKED_ROWS)
        for rows in (1, 2, 5, *limits, *(limit + 1 for limit in limits)):
            states = torch.randn(rows, width)
            exact = states.double() @ layer.weight.double().T + layer.bias.double()
            torch.testing.assert_close(layer(states).double(), exact, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("threads", "rows"), [("1", MAX_PACKED_ROWS), ("2", 16 if IS_ARM else MAX_PACKED_ROWS)]
)
def test_processes_with_one_thread_pack_weights_for_more_rows(threads: str, rows: int) -> None:
    program = (
        "import torch; torch.set_num_threads(1)\n"
        "from unittest.mock import patch\n"
        "from seqloom.nn.fast.linear import Linear, PackedLinear\n"
        "layer = Linear(4, 3).requires_grad_(False)\n"
        "with patch.object(PackedLinear, '__call__', side_effect=RuntimeError):\n"
        "    for rows in range(2, 1000):\n"
        "        try: layer(torch.zeros(rows, 4))\n"
        "        except RuntimeError: last = rows\n"
        "print(last)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "OMP_NUM_THREADS": threads},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(result.stdout) == rows


def test_inputs_of_a_frozen_layer_get_a_gradient() -> None:
    layer, states = Linear(6, 9).requires_grad_(False), torch.randn(2, 6)
    with torch.inference_mode():
        layer(states)  # weights packed here are usable outside, too
    states.requires_grad_()
    layer(states).sum().backward()
    assert states.grad is not None
    torch.testing.assert_close(states.grad, layer.weight.sum(dim=0).expand(2, -1))


@pytest.mark.parametrize("rows", [1, 5, MAX_PACKED_ROWS + 1])
def test_several_layers_with_the_same_input_are_packed_as_one(rows: int) -> None:
    layers, states, cache = (
        [Linear(6, 9) for _ in range(3)],
        torch.randn(rows, 6),
        PackedLinearCache(),
    )
    assert cache.get(layers) is None, "weights that may be trained must not be packed"
    for layer in layers:
        layer.requires_grad_(False)
    packed = cache.get(layers)
    assert packed is not None
    assert cache.get(layers) is packed
    separate = torch.cat([layer(states) for layer in layers], dim=1)
    torch.testing.assert_close(packed(states), separate)
    for joined, layer in zip(joined_linear(states, *layers), layers, strict=True):
        torch.testing.assert_close(joined, layer(states))
    layers[1].bias.add_(1)
    changed = cache.get(layers)
    assert changed is not None
    torch.testing.assert_close(changed(states)[:, 9:18], separate[:, 9:18] + 1)
    layers[2].requires_grad_(True)
    assert cache.get(layers) is None


@pytest.mark.parametrize("is_trained", [True, False])
def test_outputs_follow_every_change_of_the_weights(is_trained: bool) -> None:
    layer, states = Linear(6, 9).requires_grad_(is_trained), torch.randn(2, 6)

    def is_current() -> bool:
        with torch.no_grad():
            return torch.allclose(layer(states), states @ layer.weight.T + layer.bias, atol=1e-6)

    assert is_current()
    if is_trained:  # a fused optimiser does not increase the version of the weights
        optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
        layer(states).square().sum().backward()
        optimizer.step()
        assert is_current()
    layer.load_state_dict(Linear(6, 9).state_dict())
    assert is_current()
    layer.load_state_dict(Linear(6, 9).state_dict(), assign=True)
    assert is_current()
    layer.weight = torch.nn.Parameter(torch.randn(9, 6))
    assert is_current()
    with torch.no_grad():
        layer.weight.mul_(2)
    assert is_current()
    layer.double().float()
    assert is_current()
    layer.requires_grad_(False)
    assert is_current()
    layer.weight.data = torch.randn(9, 6)  # the same tensor with new storage
    assert is_current()


def test_inference_tensors_are_not_packed() -> None:
    """They have no version, so changes would go unnoticed."""
    with torch.inference_mode():
        layer, states = Linear(6, 9).requires_grad_(False), torch.randn(2, 6)
        assert torch.allclose(layer(states), states @ layer.weight.T + layer.bias, atol=1e-6)
        layer.weight.zero_()
        assert torch.allclose(layer(states), layer.bias.expand(2, -1))


def test_a_copy_packs_its_own_weights_and_packed_weights_are_not_saved() -> None:
    layer, states = Linear(6, 9).requires_grad_(False), torch.randn(2, 6)
    with torch.no_grad():
        before = layer(states)
        other = copy.deepcopy(layer)
        other.weight.zero_()
        other.bias.zero_()
        assert other(states).abs().max() == 0
        assert torch.equal(layer(states), before)
    assert set(layer.state_dict()) == {"weight", "bias"}
