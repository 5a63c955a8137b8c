"""The Triton kernels compute what scaled_dot_product_attention and layer_norm compute.

Without a GPU they run in Triton's interpreter, if Triton is installed.
"""

import os

import pytest
import torch

os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton", reason="Triton comes with the GPU builds of torch")

from seqloom.nn.fast import dispatch
from seqloom.nn.fast.dispatch import can_use_kernels, can_use_layer_norm
from seqloom.nn.fast.kernels import LayerNorm, cross_attention_step, self_attention_step
from seqloom.nn.fast.static_cache import SlotTable, StaticCache
from seqloom.nn.key_value_cache import KeysValues

HEADS, WIDTH = 3, 16


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "TRITON_INTERPRETED", True)


@pytest.mark.parametrize("adjacent", ["heads", "rows"])
def test_self_attention_follows_the_slots_of_each_hypothesis(adjacent: str) -> None:
    torch.manual_seed(0)
    rows, capacity = 4, 40
    position = torch.zeros((), dtype=torch.long)
    example = KeysValues(torch.randn(1, HEADS, 1, WIDTH), torch.randn(1, HEADS, 1, WIDTH))
    table = SlotTable(rows, capacity, position)
    for_kernel, for_torch = StaticCache(table, example), StaticCache(table, example)
    for _ in range(capacity):
        projected = torch.randn(rows, 3 * HEADS * WIDTH).chunk(3, dim=1)
        queries, keys, values = (part.reshape(rows, HEADS, 1, WIDTH) for part in projected)
        if adjacent == "rows":  # in memory
            keys = keys.transpose(0, 1).contiguous().transpose(0, 1)
        assert can_use_kernels(queries, values)
        context = self_attention_step(queries, KeysValues(keys, values), for_kernel, 0.3)
        memory = for_torch.append(KeysValues(keys, values))
        expected = torch.nn.functional.scaled_dot_product_attention(
            queries, memory.keys, memory.values, attn_mask=table.mask, scale=0.3
        )
        torch.testing.assert_close(context, expected.squeeze(2))
        table.select(torch.randint(rows, (rows,)))
        position += 1
    for store, expected_store in zip(for_kernel.store, for_torch.store, strict=True):
        assert torch.equal(store, expected_store)


@pytest.mark.parametrize("hypotheses", [1, 3])
def test_cross_attention_reads_the_visible_keys_of_each_source(hypotheses: int) -> None:
    torch.manual_seed(0)
    lengths = torch.tensor([37, 1, 16])
    states = torch.randn(3, 37, 2 * HEADS * WIDTH)
    keys, values = (
        part.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for part in states.chunk(2, dim=-1)
    )
    mask = (torch.arange(37) < lengths[:, None])[:, None, None]
    queries = torch.randn(3 * hypotheses, HEADS, WIDTH)
    context = cross_attention_step(queries, KeysValues(keys, values), mask, 0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(
        queries.unflatten(0, (3, hypotheses)).transpose(1, 2), keys, values, mask, scale=0.3
    )
    torch.testing.assert_close(context, expected.transpose(1, 2).flatten(0, 1))


def test_keys_and_values_may_have_different_strides() -> None:
    torch.manual_seed(0)
    keys = torch.randn(2, 5, WIDTH).unsqueeze(1)  # a projection of the states
    # The states themselves, with positions as the first dimension in memory.
    values = torch.randn(5, 2, WIDTH).transpose(0, 1).unsqueeze(1)
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    queries = torch.randn(2, 1, WIDTH)
    context = cross_attention_step(queries, KeysValues(keys, values), mask, 0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(
        queries.unsqueeze(2), keys, values, scale=0.3
    )
    torch.testing.assert_close(context, expected.squeeze(2))


def test_the_kernels_are_not_used_where_a_gradient_is_needed() -> None:
    queries, values = torch.zeros(2, HEADS, 1, 16), torch.zeros(2, HEADS, 1, 16)
    assert can_use_kernels(queries, values)
    assert not can_use_kernels(queries.requires_grad_(), values)
    with torch.no_grad():
        assert can_use_kernels(queries, values)


def test_the_kernels_are_not_used_for_unsupported_types_and_widths() -> None:
    for dtype, width in ((torch.float64, 16), (torch.float32, 24), (torch.float32, 8)):
        queries = torch.zeros(2, HEADS, 1, width, dtype=dtype)
        assert not can_use_kernels(queries, queries)
    queries, values = torch.zeros(2, HEADS, 1, 16), torch.zeros(2, HEADS, 1, 32)
    assert not can_use_kernels(queries, values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 16), (7, 512), (2, 5, 300), (3, 2049)])
def test_layer_norm(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    norm = LayerNorm(shape[-1]).to(dtype)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    inputs = (3 + 2 * torch.randn(shape)).to(dtype)
    with torch.no_grad():
        assert can_use_layer_norm(inputs, norm.weight)
        result = norm(inputs)
    assert result.dtype == dtype
    torch.testing.assert_close(result, torch.nn.LayerNorm.forward(norm, inputs))


def test_layer_norm_with_a_gradient_or_autocast_uses_torch() -> None:
    inputs, weight = torch.zeros(2, 16), torch.nn.Parameter(torch.zeros(16))
    assert not can_use_layer_norm(inputs, weight)
    with torch.no_grad():
        assert can_use_layer_norm(inputs, weight)
        assert not can_use_layer_norm(torch.zeros(16, 2).T, weight)
        with torch.autocast("cpu", torch.bfloat16):
            assert can_use_layer_norm(inputs, weight)
            assert not can_use_layer_norm(inputs.bfloat16(), weight)
