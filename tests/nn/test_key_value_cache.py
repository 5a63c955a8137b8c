"""The caches return the keys and values of all previous positions, in the order of the rows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.nn.fast.static_cache import SlotTable, StaticCache
from seqloom.nn.key_value_cache import KeysValues, KeyValueCache

HEADS, KEY_WIDTH, VALUE_WIDTH = 2, 3, 4


def random_position(rows: int) -> KeysValues:
    return KeysValues(
        torch.randn(rows, HEADS, 1, KEY_WIDTH), torch.randn(rows, HEADS, 1, VALUE_WIDTH)
    )


def block_addresses(cache: KeyValueCache) -> tuple[int, int]:
    assert cache.store is not None
    keys, values = cache.store
    return keys.data_ptr(), values.data_ptr()


@settings(deadline=None)
@given(st.data())
def test_appends_and_selects_equal_concatenation_and_indexing(
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
        new = random_position(rows)
        keys, values = torch.cat((keys, new.keys), 2), torch.cat((values, new.values), 2)
        cached = cache.append(new)
        assert cache.position == keys.shape[2]
        assert torch.equal(cached.keys, keys)
        assert torch.equal(cached.values, values)


def test_memory_is_allocated_once_and_never_grows() -> None:
    cache = KeyValueCache(capacity=6)
    cache.append(random_position(3))
    assert cache.store is not None
    assert [tuple(block.shape) for block in cache.store] == [(6, 3, 2, 3), (6, 3, 2, 4)]
    first = block_addresses(cache)
    for _ in range(2):
        cache.append(random_position(3))
        assert block_addresses(cache) == first
    # Reordering the same number of rows alternates between two blocks.
    other = block_addresses(cache.select(torch.tensor([2, 0, 0])))
    cache.append(random_position(3))
    assert block_addresses(cache) == other != first
    assert block_addresses(cache.select(torch.tensor([1, 1, 0]))) == first
    assert block_addresses(cache.select(torch.tensor([0, 1, 2]))) == other


def test_a_step_beyond_the_capacity_is_rejected() -> None:
    cache = KeyValueCache(capacity=2)
    for _ in range(2):
        cache.append(random_position(1))
    with pytest.raises(AssertionError, match="allocated for fewer steps"):
        cache.append(random_position(1))


def test_a_static_cache_returns_the_keys_and_values_of_the_plain_cache() -> None:
    """Whichever rows are selected after each step; unused slots are masked."""
    torch.manual_seed(0)
    rows, capacity = 3, 6
    plain, position = KeyValueCache(capacity), torch.zeros((), dtype=torch.long)
    table = SlotTable(rows, capacity, position)
    static = StaticCache(table, random_position(1))
    for step in range(1, capacity + 1):
        new = random_position(rows)
        expected, cached = plain.append(new), static.append(new)
        assert static.mask.sum() == step
        assert torch.equal(cached.keys[:, :, :step], expected.keys)
        assert torch.equal(cached.values[:, :, :step], expected.values)
        selected = torch.randint(rows, (rows,))
        plain.select(selected)
        table.select(selected)
        static.select(selected)
        position += 1
