"""What is decoded together: like lengths, as much as there is room for, and all of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.runs.batching import IMAGE_TOKENS, batches_by_length, input_tokens
from seqloom.tasks.task import ModelInput


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_everything_is_there_once_and_the_longest_comes_first(
    lengths: list[int], budget: int
) -> None:
    batches = list(batches_by_length(lengths, budget))
    order = [number for batch in batches for number in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[number] for number in order] == sorted(lengths, reverse=True)
    for batch in batches[:-1]:
        assert len(batch) == 1 or lengths[batch[0]] * len(batch) <= budget
    for batch in batches[-1:]:
        assert len(batch) == 1 or lengths[batch[0]] * len(batch) <= 2 * budget


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_if_the_last_may_fill_one_budget_none_fills_more(lengths: list[int], budget: int) -> None:
    for batch in batches_by_length(lengths, budget, last_batch_factor=1):
        assert len(batch) == 1 or lengths[batch[0]] * len(batch) <= budget


@pytest.mark.parametrize(("texts", "batches"), [(10, 1), (15, 1), (20, 1), (21, 2), (45, 4)])
def test_a_few_that_are_left_go_along_with_those_before_them(texts: int, batches: int) -> None:
    """Ten texts are a batch; twenty, if they are the last."""
    found = list(batches_by_length([4] * texts, 40))
    assert len(found) == batches
    assert all(len(batch) == 10 for batch in found[:-1])


def test_what_is_read_counts_and_an_image_counts_as_many_tokens() -> None:
    """Else thousands of them, which have no tokens, would be read at once."""
    image = np.zeros((3, 8, 8), dtype=np.uint8)
    sizes = [
        input_tokens(one)
        for one in (ModelInput((5, 6), (7,)), ModelInput(None, (7,)), ModelInput(None, (), image))
    ]
    assert sizes == [3, 2, IMAGE_TOKENS]
    batches = batches_by_length([IMAGE_TOKENS] * 1000, 4096)
    assert max(map(len, batches)) * IMAGE_TOKENS <= 2 * 4096
