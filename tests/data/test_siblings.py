"""Which examples have the same source: all of them, and no others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.siblings import Siblings


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 6))
def test_siblings_are_all_that_have_the_same_source_in_their_order(
    sources: list[int], keys: int
) -> None:
    """Also where keys are too few, and what differs has the same one."""
    found = Siblings(np.array(sources) % keys, lambda one, other: sources[one] == sources[other])
    for index, source in enumerate(sources):
        assert found.of(index) == [n for n, other in enumerate(sources) if other == source]
