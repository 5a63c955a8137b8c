"""Looks in turn, and the way back that they share."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from seqloom.nn.cache import KeysValues
from seqloom.nn.looking import InTurn, in_turn

B, H, T, S, D = 3, 2, 4, 5, 6
SCALE = 0.7


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def tensors() -> list[Tensor]:
    torch.manual_seed(0)
    return [random(T, B, H, 1, D), random(B, H, S, D), random(B, H, S, D + 1)]


def hidden_ends() -> Tensor:
    mask = torch.zeros(B, 1, 1, S, dtype=torch.float64)
    mask[1, ..., 2:] = float("-inf")
    return mask


def looks(tensors: list[Tensor], mask: Tensor | None, room: int = T) -> Tensor:
    queries, keys, values = tensors
    memory = in_turn(KeysValues(keys, values), mask, SCALE, room)
    assert isinstance(memory, InTurn)
    return torch.stack([memory.look(each) for each in queries])


def plain_looks(tensors: list[Tensor], mask: Tensor | None) -> Tensor:
    queries, keys, values = tensors
    return torch.stack(
        [scaled_dot_product_attention(q, keys, values, mask, scale=SCALE) for q in queries]
    )


@pytest.mark.parametrize("mask", [None, hidden_ends()], ids=["all is seen", "ends are hidden"])
@pytest.mark.parametrize("room", [T, T + 2])
def test_looks_in_turn_read_and_learn_what_single_looks_do(
    tensors: list[Tensor], mask: Tensor | None, room: int
) -> None:
    found, expected = looks(tensors, mask, room), plain_looks(tensors, mask)
    torch.testing.assert_close(found, expected)
    reaching = torch.randn_like(expected)
    for one, other in zip(
        torch.autograd.grad(found, tensors, reaching),
        torch.autograd.grad(expected, tensors, reaching),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_a_gradient_may_be_asked_for_again_and_of_a_part_alone(tensors: list[Tensor]) -> None:
    """Nothing that one way back has found is left over for the next."""
    read = looks(tensors, None).sum()
    torch.autograd.grad(read, tensors[0], retain_graph=True)
    first = torch.autograd.grad(read, tensors, retain_graph=True)
    for one, other in zip(first, torch.autograd.grad(read, tensors), strict=True):
        torch.testing.assert_close(one, other)
    expected = torch.autograd.grad(plain_looks(tensors, None).sum(), tensors)
    for one, other in zip(first, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_where_nothing_learns_keys_and_values_stay_as_they_are(tensors: list[Tensor]) -> None:
    memory = KeysValues(tensors[1], tensors[2])
    with torch.no_grad():
        assert in_turn(memory, None, SCALE, T) is memory
    with torch.autocast("cpu", torch.bfloat16):
        assert in_turn(memory, None, SCALE, T) is memory
