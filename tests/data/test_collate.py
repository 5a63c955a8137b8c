"""Collating: END after sources, inputs shifted by one against targets, padding."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.batch import Padded
from seqloom.data.batching.collate import collate
from seqloom.text.vocabulary import END, PAD, START

texts = st.lists(st.lists(st.integers(4, 99), max_size=6), min_size=1, max_size=5)


@given(texts)
def test_inputs_are_targets_shifted_by_one(rows: list[list[int]]) -> None:
    ids = [np.array(row, dtype=np.int32) for row in rows]
    batch = collate(ids, ids)
    assert isinstance(batch.source, Padded)
    assert batch.num_targets == sum(len(row) + 1 for row in rows)
    for index, row in enumerate(rows):
        length = len(row) + 1
        assert batch.source.values[index, :length].tolist() == [*row, END]
        assert batch.inputs.values[index, :length].tolist() == [START, *row]
        assert batch.targets.values[index, :length].tolist() == [*row, END]
        for padded in (batch.source, batch.inputs, batch.targets):
            assert padded.lengths[index] == length
            assert (padded.values[index, length:] == PAD).all()


def test_batch_of_a_language_model_has_no_source() -> None:
    batch = collate(None, [np.array([5, 6], dtype=np.int32)])
    assert batch.source is None
    assert batch.inputs.values.tolist() == [[START, 5, 6]]
