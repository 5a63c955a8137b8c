"""Sampling: what is drawn, how often, and on what it depends."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_decoders import EchoDecoder, TableDecoder, random_memory

from seqloom.decoding.greedy import Greedy
from seqloom.decoding.sample import Sample, invert
from seqloom.decoding.search import Request

SHARES = [0.0, 0.0, 0.1, 0.0, 0.3, 0.4, 0.2]
"""PAD START END UNKNOWN a b c"""


def first_tokens(sample: Sample) -> Counter[int]:
    """How often each token comes first; END is 2."""
    decoder, memory = TableDecoder({}, other=SHARES), random_memory(0, [1])
    [found] = sample(decoder, memory, Request([1]))
    assert len(found) == sample.samples
    return Counter(one.tokens[0] if one.tokens else 2 for one in found)


def assert_frequencies(counts: Counter[int], shares: dict[int, float]) -> None:
    """Each count lies within five standard deviations of its expectation."""
    total = counts.total()
    assert set(counts) == set(shares)
    for token, share in shares.items():
        deviation = math.sqrt(total * share * (1 - share))
        assert abs(counts[token] - total * share) <= 5 * deviation


def test_tokens_are_drawn_as_often_as_they_are_probable() -> None:
    counts = first_tokens(Sample(samples=4000))
    assert_frequencies(counts, {2: 0.1, 4: 0.3, 5: 0.4, 6: 0.2})


def test_a_temperature_takes_probabilities_to_a_power() -> None:
    powers = {2: 0.1**2, 4: 0.3**2, 5: 0.4**2, 6: 0.2**2}
    shares = {token: power / sum(powers.values()) for token, power in powers.items()}
    assert_frequencies(first_tokens(Sample(temperature=0.5, samples=4000)), shares)


def test_top_k_draws_from_the_k_likeliest() -> None:
    counts = first_tokens(Sample(top_k=2, samples=3000))
    assert_frequencies(counts, {4: 3 / 7, 5: 4 / 7})


def test_top_p_draws_from_the_smallest_set_with_that_share() -> None:
    assert set(first_tokens(Sample(top_p=0.39, samples=500))) == {5}
    assert set(first_tokens(Sample(top_p=0.41, samples=500))) == {5, 4}
    assert set(first_tokens(Sample(top_p=0.75, samples=500))) == {5, 4, 6}
    assert set(first_tokens(Sample(top_p=0.95, samples=500))) == {5, 4, 6, 2}


def test_top_p_is_a_share_of_what_top_k_leaves() -> None:
    """Of b and a, b holds 4/7 = 0.571."""
    assert set(first_tokens(Sample(top_k=2, top_p=0.55, samples=500))) == {5}
    assert set(first_tokens(Sample(top_k=2, top_p=0.6, samples=500))) == {5, 4}


def test_epsilon_leaves_what_is_probable_enough_and_always_the_best() -> None:
    """By the model's own shares, whatever the temperature."""
    for epsilon in (0.05, 0.25, 0.9):
        enough = {token for token, share in enumerate(SHARES) if share >= epsilon}
        best = max(range(len(SHARES)), key=SHARES.__getitem__)
        for temperature in (0.9, 4.0):
            sample = Sample(epsilon=epsilon, temperature=temperature, samples=500)
            assert set(first_tokens(sample)) == (enough or {best})


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(-(10**6), 10**6))
def test_the_coldest_and_the_narrowest_sample_is_greedy(seed: int) -> None:
    decoder, memory = EchoDecoder(abs(seed), words=4), random_memory(abs(seed), [2, 3])
    request = Request([5, 4])
    greedy = Greedy()(decoder, memory, request)
    for sample in [
        Sample(temperature=1e-9, seed=seed),
        Sample(temperature=5e-324, seed=seed),
        Sample(top_k=1, seed=seed),
        Sample(top_p=1e-9, seed=seed),
    ]:
        assert sample(decoder, memory, request) == greedy


def test_no_temperature_is_too_low_for_single_precision() -> None:
    allowed = torch.randn(50, 7).log_softmax(dim=1)
    for temperature in [1e-6, 1e-40, 5e-324]:
        drawn = Sample(temperature=temperature).draw(allowed, torch.rand(50))
        assert torch.equal(drawn, allowed.argmax(dim=1))


def test_samples_differ_by_seed_source_and_number_and_repeat_exactly() -> None:
    decoder, memory = EchoDecoder(1, words=20), random_memory(1, [2])
    request = Request([12])

    def draw(seed: int, index: int) -> list[tuple[int, ...]]:
        sample = Sample(temperature=3.0, samples=3, seed=seed)
        [found] = sample(decoder, memory, Request([12], indices=[index]))
        return [one.tokens for one in found]

    outputs = draw(0, 0) + draw(1, 0) + draw(0, 1)
    assert len(set(outputs)) == 9
    assert draw(0, 0) == draw(0, 0)
    [again] = Sample(temperature=3.0, samples=3)(decoder, memory, request)
    assert [one.tokens for one in again] == draw(0, 0)


@given(
    st.lists(st.sampled_from([0.0, 1e-30, 0.25, 3.0]), min_size=1, max_size=6).filter(any),
    st.floats(0, 1, width=32),
)
def test_what_has_no_weight_is_never_drawn(weights: list[float], uniform: float) -> None:
    table = torch.tensor([weights])
    [column] = invert(table, torch.tensor([uniform])).tolist()
    assert weights[column] > 0
    below = sum(weights[:column]) / sum(weights)
    assert below <= uniform + 1e-6
    assert uniform <= below + weights[column] / sum(weights) + 1e-6


def test_the_temperature_does_not_touch_the_score() -> None:
    decoder, memory = TableDecoder({}, other=SHARES), random_memory(0, [1])
    for one in Sample(temperature=0.3, top_k=3, samples=20)(decoder, memory, Request([1]))[0]:
        token = one.tokens[0] if one.tokens else 2
        assert one.log_probabilities == pytest.approx((math.log(SHARES[token]),))
