"""What is remembered of the past is the past, wherever it lies in memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.nn.cache import KeysValues, KeyValueCache

HEADS, KEY_WIDTH, VALUE_WIDTH = 2, 3, 4


def one_position(rows: int) -> KeysValues:
    return KeysValues(
        torch.randn(rows, HEADS, 1, KEY_WIDTH), torch.randn(rows, HEADS, 1, VALUE_WIDTH)
    )


def block_addresses(cache: KeyValueCache) -> tuple[int, int]:
    assert cache.store is not None
    keys, values = cache.store
    return keys.data_ptr(), values.data_ptr()


@settings(deadline=None)
@given(st.data())
def test_any_sequence_of_appends_and_selects_is_plain_concatenation_and_indexing(
    data: st.DataObject,
) -> None:
    rows, capacity = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 8))
    cache = KeyValueCache(capacity)
    keys: Tensor = torch.empty(rows, HEADS, 0, KEY_WIDTH)
    values: Tensor = torch.empty(rows, HEADS, 0, VALUE_WIDTH)
    for _ in range(capacity):
        for _ in range(data.draw(st.integers(0, 2))):
            chosen = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=6))
            index, rows = torch.tensor(chosen), len(chosen)
            cache = cache.select(index)
            keys, values = keys.index_select(0, index), values.index_select(0, index)
        new = one_position(rows)
        keys, values = torch.cat((keys, new.keys), 2), torch.cat((values, new.values), 2)
        found = cache.append(new)
        assert cache.position == keys.shape[2]
        assert torch.equal(found.keys, keys)
        assert torch.equal(found.values, values)


def test_memory_is_reserved_once_and_never_grows() -> None:
    cache = KeyValueCache(capacity=6)
    cache.append(one_position(3))
    assert cache.store is not None
    assert [tuple(block.shape) for block in cache.store] == [(6, 3, 2, 3), (6, 3, 2, 4)]
    first = block_addresses(cache)
    for _ in range(2):
        cache.append(one_position(3))
        assert block_addresses(cache) == first
    # Reordering as many rows takes turns between two blocks, whatever the number of steps.
    other = block_addresses(cache.select(torch.tensor([2, 0, 0])))
    cache.append(one_position(3))
    assert block_addresses(cache) == other != first
    assert block_addresses(cache.select(torch.tensor([1, 1, 0]))) == first
    assert block_addresses(cache.select(torch.tensor([0, 1, 2]))) == other


def test_a_step_more_than_was_reserved_is_our_own_mistake() -> None:
    cache = KeyValueCache(capacity=2)
    for _ in range(2):
        cache.append(one_position(1))
    with pytest.raises(AssertionError, match="reserved for fewer steps"):
        cache.append(one_position(1))
