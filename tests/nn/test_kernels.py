"""The kernels for GPUs compute what the general parts compute.

They run here without a GPU, by Triton's own interpreter, where Triton is installed.
"""

import os

import pytest
import torch

os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton", reason="comes with torch where there are GPUs")

from seqloom.nn import kernels
from seqloom.nn.cache import Ancestry, KeysValues, StaticCache

HEADS, WIDTH = 3, 16


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "INTERPRETED", True)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def test_one_position_after_another_looks_back_through_its_ancestry() -> None:
    torch.manual_seed(0)
    rows, capacity = 4, 40
    position = torch.zeros((), dtype=torch.long)
    example = KeysValues(drawn(1, HEADS, 1, WIDTH), drawn(1, HEADS, 1, WIDTH))
    caches = []
    ancestry = Ancestry(rows, capacity, position)
    for _ in range(2):
        caches.append(StaticCache(ancestry, example))
    for _ in range(capacity):
        queries, *new = drawn(rows, 3 * HEADS * WIDTH).chunk(3, dim=1)
        queries, keys, values = (x.reshape(rows, HEADS, 1, WIDTH) for x in (queries, *new))
        assert kernels.can_run(queries, values)
        found = kernels.look_back(queries, KeysValues(keys, values), caches[0], 0.3)
        past = caches[1].append(KeysValues(keys, values))
        expected = torch.nn.functional.scaled_dot_product_attention(
            queries, past.keys, past.values, attn_mask=ancestry.mask, scale=0.3
        )
        torch.testing.assert_close(found, expected.squeeze(2))
        ancestry.select(torch.randint(rows, (rows,)))
        position += 1
    for one, other in zip(caches[0].store, caches[1].store, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("hypotheses", [1, 3])
def test_hypotheses_look_across_at_what_the_mask_shows(hypotheses: int) -> None:
    torch.manual_seed(0)
    lengths = torch.tensor([37, 1, 16])
    states = drawn(3, 37, 2 * HEADS * WIDTH)
    keys, values = (
        part.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for part in states.chunk(2, dim=-1)
    )
    mask = (torch.arange(37) < lengths[:, None])[:, None, None]
    queries = drawn(3 * hypotheses, HEADS, WIDTH)
    found = kernels.look_across(queries, KeysValues(keys, values), mask, 0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(
        queries.unflatten(0, (3, hypotheses)).transpose(1, 2), keys, values, mask, scale=0.3
    )
    torch.testing.assert_close(found, expected.transpose(1, 2).flatten(0, 1))


def test_keys_and_values_may_lie_differently_in_memory() -> None:
    torch.manual_seed(0)
    keys = drawn(2, 5, WIDTH).unsqueeze(1)  # a projection of the states
    values = drawn(5, 2, WIDTH).transpose(0, 1).unsqueeze(1)  # the states themselves, time first
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    queries = drawn(2, 1, WIDTH)
    found = kernels.look_across(queries, KeysValues(keys, values), mask, 0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(
        queries.unsqueeze(2), keys, values, scale=0.3
    )
    torch.testing.assert_close(found, expected.squeeze(2))


def test_where_a_gradient_is_wanted_they_leave_it_to_parts_that_know_one() -> None:
    queries, values = torch.zeros(2, HEADS, 1, 16), torch.zeros(2, HEADS, 1, 16)
    assert kernels.can_run(queries, values)
    assert not kernels.can_run(queries.requires_grad_(), values)
    with torch.no_grad():
        assert kernels.can_run(queries, values)


def test_what_they_cannot_compute_they_leave_alone() -> None:
    for dtype, width in ((torch.float64, 16), (torch.float32, 24), (torch.float32, 8)):
        queries = torch.zeros(2, HEADS, 1, width, dtype=dtype)
        assert not kernels.can_run(queries, queries)
    queries, values = torch.zeros(2, HEADS, 1, 16), torch.zeros(2, HEADS, 1, 32)
    assert not kernels.can_run(queries, values)
