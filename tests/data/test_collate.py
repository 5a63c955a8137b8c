import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.batch import Padded
from seqloom.data.collate import collate
from seqloom.text.vocabulary import END, PAD, START

texts = st.lists(st.lists(st.integers(4, 99), max_size=6), min_size=1, max_size=5)


@given(texts)
def test_sources_end_and_inputs_are_targets_one_step_behind(rows: list[list[int]]) -> None:
    ids = [np.array(row, dtype=np.int32) for row in rows]
    batch = collate(ids, ids)
    assert isinstance(batch.source, Padded)
    assert batch.num_targets == sum(len(row) + 1 for row in rows)
    for place, row in enumerate(rows):
        n = len(row) + 1
        assert batch.source.values[place, :n].tolist() == [*row, END]
        assert batch.inputs.values[place, :n].tolist() == [START, *row]
        assert batch.targets.values[place, :n].tolist() == [*row, END]
        for padded in (batch.source, batch.inputs, batch.targets):
            assert padded.lengths[place] == n
            assert (padded.values[place, n:] == PAD).all()


def test_a_language_model_has_no_source() -> None:
    batch = collate(None, [np.array([5, 6], dtype=np.int32)])
    assert batch.source is None
    assert batch.inputs.values.tolist() == [[START, 5, 6]]
