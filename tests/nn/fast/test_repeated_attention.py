"""Attention steps with a shared gradient have the outputs and gradients of separate steps."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from seqloom.nn.fast.repeated_attention import RepeatedKeysValues, share_gradient
from seqloom.nn.key_value_cache import KeysValues

B, H, T, S, D = 3, 2, 4, 5, 6
SCALE = 0.7


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def tensors() -> list[Tensor]:
    """queries, keys, values"""
    torch.manual_seed(0)
    return [random(T, B, H, 1, D), random(B, H, S, D), random(B, H, S, D + 1)]


def additive_mask() -> Tensor:
    mask = torch.zeros(B, 1, 1, S, dtype=torch.float64)
    mask[1, ..., 2:] = float("-inf")
    return mask


def shared_steps(tensors: list[Tensor], mask: Tensor | None, max_steps: int = T) -> Tensor:
    queries, keys, values = tensors
    memory = share_gradient(KeysValues(keys, values), mask, SCALE, max_steps)
    assert isinstance(memory, RepeatedKeysValues)
    return torch.stack([memory.attend(each) for each in queries])


def separate_steps(tensors: list[Tensor], mask: Tensor | None) -> Tensor:
    queries, keys, values = tensors
    return torch.stack(
        [scaled_dot_product_attention(q, keys, values, mask, scale=SCALE) for q in queries]
    )


@pytest.mark.parametrize("mask", [None, additive_mask()], ids=["all visible", "some hidden"])
@pytest.mark.parametrize("max_steps", [T, T + 2])
def test_shared_steps_have_the_outputs_and_gradients_of_separate_steps(
    tensors: list[Tensor], mask: Tensor | None, max_steps: int
) -> None:
    contexts, expected = shared_steps(tensors, mask, max_steps), separate_steps(tensors, mask)
    torch.testing.assert_close(contexts, expected)
    gradient = torch.randn_like(expected)
    for shared, separate in zip(
        torch.autograd.grad(contexts, tensors, gradient),
        torch.autograd.grad(expected, tensors, gradient),
        strict=True,
    ):
        torch.testing.assert_close(shared, separate)


def test_gradients_can_be_computed_repeatedly_and_for_some_tensors_only(
    tensors: list[Tensor],
) -> None:
    """One backward pass leaves nothing behind for the next."""
    loss = shared_steps(tensors, None).sum()
    torch.autograd.grad(loss, tensors[0], retain_graph=True)
    first = torch.autograd.grad(loss, tensors, retain_graph=True)
    for gradient, again in zip(first, torch.autograd.grad(loss, tensors), strict=True):
        torch.testing.assert_close(gradient, again)
    expected = torch.autograd.grad(separate_steps(tensors, None).sum(), tensors)
    for gradient, separate in zip(first, expected, strict=True):
        torch.testing.assert_close(gradient, separate)


def test_keys_and_values_are_unchanged_without_gradients_and_under_autocast(
    tensors: list[Tensor],
) -> None:
    memory = KeysValues(tensors[1], tensors[2])
    with torch.no_grad():
        assert share_gradient(memory, None, SCALE, T) is memory
    with torch.autocast("cpu", torch.bfloat16):
        assert share_gradient(memory, None, SCALE, T) is memory
