"""Parts drawn by temperature: how often each is seen, and that no example is forgotten."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.data.mixture import Part, draw_epoch, shares_of

sizes = st.lists(st.integers(1, 60), min_size=1, max_size=5)
temperatures = st.floats(1, 100)


def parts_of(counts: list[int]) -> list[Part]:
    """One after the other, as corpora are read."""
    ends = np.cumsum(counts).tolist()
    return [
        Part(f"part {number}", ((end - count, end),))
        for number, (count, end) in enumerate(zip(counts, ends, strict=True))
    ]


def test_a_temperature_of_one_is_the_data_as_it_is_and_a_high_one_makes_all_parts_equal() -> None:
    parts = parts_of([900, 90, 10])
    assert [share.drawn for share in shares_of(parts, 1.0)] == [900, 90, 10]
    assert [share.drawn for share in shares_of(parts, 1e9)] == [334, 333, 333]


def test_the_share_of_a_part_goes_with_the_root_of_its_size() -> None:
    # 10000^(1/2) : 100^(1/2) = 10 : 1
    shares = shares_of(parts_of([10_000, 100]), 2.0)
    assert shares[0].drawn / shares[1].drawn == pytest.approx(10, rel=1e-2)


@given(sizes, temperatures)
def test_an_epoch_has_as_many_examples_as_there_are(counts: list[int], temperature: float) -> None:
    shares = shares_of(parts_of(counts), temperature)
    assert all(share.drawn >= 1 for share in shares)
    # A part that would not be seen at all is seen once, which may make the epoch longer.
    assert sum(counts) <= sum(share.drawn for share in shares) <= sum(counts) + len(counts)
    assert [share.examples for share in shares] == counts


@given(sizes, temperatures, st.integers(0, 3), st.integers(1, 6))
@settings(deadline=None)
def test_no_example_of_a_part_is_ever_two_draws_ahead_of_another(
    counts: list[int], temperature: float, seed: int, epochs: int
) -> None:
    parts = parts_of(counts)
    seen: Counter[int] = Counter()
    for epoch in range(epochs):
        seen.update(draw_epoch(parts, temperature, seed, epoch).tolist())
    for part, share in zip(parts, shares_of(parts, temperature), strict=True):
        ((start, stop),) = part.stretches
        often = [seen[example] for example in range(start, stop)]
        assert sum(often) == epochs * share.drawn
        assert max(often) - min(often) <= 1


def test_an_epoch_is_a_function_of_seed_and_number_alone() -> None:
    parts = parts_of([50, 5])
    one = draw_epoch(parts, 5.0, 1, 3)
    assert np.array_equal(one, draw_epoch(parts, 5.0, 1, 3))
    assert not np.array_equal(one, draw_epoch(parts, 5.0, 2, 3))
    assert not np.array_equal(one, draw_epoch(parts, 5.0, 1, 4))


def test_every_shuffle_of_a_part_is_another() -> None:
    """60 examples, 40 of them an epoch: epochs 0 and 3 both take the first 40 of a shuffle."""
    parts = parts_of([60, 20])
    first, fourth = (draw_epoch(parts, 1e9, 1, epoch) for epoch in (0, 3))
    assert not np.array_equal(first, fourth)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_a_part_read_from_several_corpora_is_one_part(gaps: list[int]) -> None:
    """Between two stretches of the part lies something else."""
    stretches, place = [], 0
    for size in gaps:
        stretches.append((place, place + size))
        place += size + 3
    part = Part("en-de", tuple(stretches))
    own = [example for start, stop in stretches for example in range(start, stop)]
    assert part.size == len(own)
    assert part.examples(np.arange(part.size)).tolist() == own
