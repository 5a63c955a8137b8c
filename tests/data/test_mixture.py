"""Temperature sampling: shares of the groups, and even draws within a group."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.data.batching.mixture import DataGroup, draw_epoch, group_shares
from seqloom.data.example import REPLAY_GROUP

sizes = st.lists(st.integers(1, 60), min_size=1, max_size=5)
temperatures = st.floats(1, 100)


def make_groups(counts: list[int]) -> list[DataGroup]:
    """Groups of these sizes, in adjacent ranges."""
    ends = np.cumsum(counts).tolist()
    return [
        DataGroup(f"group {number}", ((end - count, end),))
        for number, (count, end) in enumerate(zip(counts, ends, strict=True))
    ]


def test_temperature_one_keeps_the_sizes_and_a_high_one_equalises_them() -> None:
    groups = make_groups([900, 90, 10])
    assert [share.drawn for share in group_shares(groups, 1.0)] == [900, 90, 10]
    assert [share.drawn for share in group_shares(groups, 1e9)] == [334, 333, 333]


def test_share_is_proportional_to_a_root_of_the_size() -> None:
    # 10000^(1/2) : 100^(1/2) = 10 : 1
    shares = group_shares(make_groups([10_000, 100]), 2.0)
    assert shares[0].drawn / shares[1].drawn == pytest.approx(10, rel=1e-2)


@given(sizes, temperatures)
def test_epoch_draws_as_many_examples_as_there_are(counts: list[int], temperature: float) -> None:
    shares = group_shares(make_groups(counts), temperature)
    assert all(share.drawn >= 1 for share in shares)
    # Each group is drawn at least once, which may make the epoch longer.
    assert sum(counts) <= sum(share.drawn for share in shares) <= sum(counts) + len(counts)
    assert [share.examples for share in shares] == counts


@given(sizes, temperatures, st.integers(0, 3), st.integers(1, 6))
@settings(deadline=None)
def test_draws_of_two_examples_of_a_group_differ_by_at_most_one(
    counts: list[int], temperature: float, seed: int, epochs: int
) -> None:
    groups = make_groups(counts)
    drawn: Counter[int] = Counter()
    for epoch in range(epochs):
        drawn.update(draw_epoch(groups, temperature, seed, epoch).tolist())
    for group, share in zip(groups, group_shares(groups, temperature), strict=True):
        ((start, stop),) = group.ranges
        draws = [drawn[example] for example in range(start, stop)]
        assert sum(draws) == epochs * share.drawn
        assert max(draws) - min(draws) <= 1


def test_epoch_depends_on_seed_and_number_alone() -> None:
    groups = make_groups([50, 5])
    first = draw_epoch(groups, 5.0, 1, 3)
    assert np.array_equal(first, draw_epoch(groups, 5.0, 1, 3))
    assert not np.array_equal(first, draw_epoch(groups, 5.0, 2, 3))
    assert not np.array_equal(first, draw_epoch(groups, 5.0, 1, 4))


def test_every_cycle_of_a_group_is_shuffled_differently() -> None:
    """60 examples, 40 per epoch: epochs 0 and 3 both take the first 40 of a shuffle."""
    groups = make_groups([60, 20])
    first, fourth = (draw_epoch(groups, 1e9, 1, epoch) for epoch in (0, 3))
    assert not np.array_equal(first, fourth)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_group_of_several_corpora_maps_indices_across_gaps(sizes: list[int]) -> None:
    """The ranges of the group are separated by examples of other groups."""
    ranges, start = [], 0
    for size in sizes:
        ranges.append((start, start + size))
        start += size + 3
    group = DataGroup("en-de", tuple(ranges))
    expected = [example for start, stop in ranges for example in range(start, stop)]
    assert group.size == len(expected)
    assert group.examples(np.arange(group.size)).tolist() == expected


@given(sizes, st.integers(1, 60), st.floats(0.05, 0.95), st.integers(0, 5))
def test_replayed_examples_have_their_share_of_every_epoch_and_the_others_are_drawn_once(
    counts: list[int], replayed: int, share: float, epoch: int
) -> None:
    *own, last = make_groups([*counts, replayed])
    groups = [*own, replace(last, name=REPLAY_GROUP)]
    drawn = draw_epoch(groups, 1.0, 1, epoch, share)
    new = drawn[drawn < sum(counts)]
    assert np.array_equal(new, np.arange(sum(counts)))
    expected = max(round(sum(counts) * share / (1 - share)), 1)
    assert len(drawn) - len(new) == expected
    assert group_shares(groups, 1.0, share)[-1].drawn == expected
