"""Sampling: which tokens are drawn, how often, and what the draws depend on."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.decoding.greedy import Greedy
from seqloom.decoding.sampling import Sampling, sample_columns
from seqloom.decoding.search import SearchRequest
from seqloom.text.vocabulary import END
from support.toy_decoders import EchoDecoder, TableDecoder, random_memory

PROBABILITIES = [0.0, 0.0, 0.1, 0.0, 0.3, 0.4, 0.2]
"""Of PAD, START, END, UNKNOWN, a, b, c."""


def first_tokens(sampling: Sampling) -> Counter[int]:
    """How often each token is drawn first."""
    decoder, memory = TableDecoder({}, default=PROBABILITIES), random_memory(0, [1])
    [hypotheses] = sampling(decoder, memory, SearchRequest([1]))
    assert len(hypotheses) == sampling.samples
    return Counter(hypothesis.tokens[0] if hypothesis.tokens else END for hypothesis in hypotheses)


def assert_frequencies(counts: Counter[int], probabilities: dict[int, float]) -> None:
    """Each count is within five standard deviations of its expectation."""
    total = counts.total()
    assert set(counts) == set(probabilities)
    for token, probability in probabilities.items():
        deviation = math.sqrt(total * probability * (1 - probability))
        assert abs(counts[token] - total * probability) <= 5 * deviation


def test_frequencies_of_drawn_tokens_equal_their_probabilities() -> None:
    counts = first_tokens(Sampling(samples=4000))
    assert_frequencies(counts, {END: 0.1, 4: 0.3, 5: 0.4, 6: 0.2})


def test_temperature_raises_probabilities_to_a_power() -> None:
    powers = {END: 0.1**2, 4: 0.3**2, 5: 0.4**2, 6: 0.2**2}
    expected = {token: power / sum(powers.values()) for token, power in powers.items()}
    assert_frequencies(first_tokens(Sampling(temperature=0.5, samples=4000)), expected)


def test_top_k_draws_from_the_k_most_probable_tokens() -> None:
    counts = first_tokens(Sampling(top_k=2, samples=3000))
    assert_frequencies(counts, {4: 3 / 7, 5: 4 / 7})


def test_top_p_draws_from_the_smallest_set_with_that_probability() -> None:
    assert set(first_tokens(Sampling(top_p=0.39, samples=500))) == {5}
    assert set(first_tokens(Sampling(top_p=0.41, samples=500))) == {5, 4}
    assert set(first_tokens(Sampling(top_p=0.75, samples=500))) == {5, 4, 6}
    assert set(first_tokens(Sampling(top_p=0.95, samples=500))) == {5, 4, 6, END}


def test_top_p_is_relative_to_the_tokens_that_top_k_keeps() -> None:
    """Of the tokens a and b, b has 4/7 = 0.571 of the probability."""
    assert set(first_tokens(Sampling(top_k=2, top_p=0.55, samples=500))) == {5}
    assert set(first_tokens(Sampling(top_k=2, top_p=0.6, samples=500))) == {5, 4}


def test_epsilon_keeps_tokens_above_it_and_always_the_most_probable_one() -> None:
    """By the probabilities of the model, whatever the temperature."""
    for epsilon in (0.05, 0.25, 0.9):
        kept = {token for token, value in enumerate(PROBABILITIES) if value >= epsilon}
        best = max(range(len(PROBABILITIES)), key=PROBABILITIES.__getitem__)
        for temperature in (0.9, 4.0):
            sampling = Sampling(epsilon=epsilon, temperature=temperature, samples=500)
            assert set(first_tokens(sampling)) == (kept or {best})


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(-(10**6), 10**6))
def test_lowest_temperature_and_narrowest_sampling_equal_greedy_search(seed: int) -> None:
    decoder, memory = EchoDecoder(abs(seed), words=4), random_memory(abs(seed), [2, 3])
    request = SearchRequest([5, 4])
    greedy = Greedy()(decoder, memory, request)
    for sampling in [
        Sampling(temperature=1e-9, seed=seed),
        Sampling(temperature=5e-324, seed=seed),
        Sampling(top_k=1, seed=seed),
        Sampling(top_p=1e-9, seed=seed),
    ]:
        assert sampling(decoder, memory, request) == greedy


def test_any_low_temperature_works_in_single_precision() -> None:
    log_probabilities = torch.randn(50, 7).log_softmax(dim=1)
    for temperature in [1e-6, 1e-40, 5e-324]:
        drawn = Sampling(temperature=temperature).draw(log_probabilities, torch.rand(50))
        assert torch.equal(drawn, log_probabilities.argmax(dim=1))


def test_samples_depend_on_seed_source_and_sample_index_and_are_reproducible() -> None:
    decoder, memory = EchoDecoder(1, words=20), random_memory(1, [2])
    request = SearchRequest([12])

    def draw(seed: int, index: int) -> list[tuple[int, ...]]:
        sampling = Sampling(temperature=3.0, samples=3, seed=seed)
        [hypotheses] = sampling(decoder, memory, SearchRequest([12], indices=[index]))
        return [hypothesis.tokens for hypothesis in hypotheses]

    outputs = draw(0, 0) + draw(1, 0) + draw(0, 1)
    assert len(set(outputs)) == 9
    assert draw(0, 0) == draw(0, 0)
    [again] = Sampling(temperature=3.0, samples=3)(decoder, memory, request)
    assert [hypothesis.tokens for hypothesis in again] == draw(0, 0)


@given(
    st.lists(st.sampled_from([0.0, 1e-30, 0.25, 3.0]), min_size=1, max_size=6).filter(any),
    st.floats(0, 1, width=32),
)
def test_column_with_weight_zero_is_never_drawn(weights: list[float], uniform: float) -> None:
    table = torch.tensor([weights])
    [column] = sample_columns(table, torch.tensor([uniform])).tolist()
    assert weights[column] > 0
    below = sum(weights[:column]) / sum(weights)
    assert below <= uniform + 1e-6
    assert uniform <= below + weights[column] / sum(weights) + 1e-6


def test_temperature_does_not_change_scores() -> None:
    decoder, memory = TableDecoder({}, default=PROBABILITIES), random_memory(0, [1])
    sampling = Sampling(temperature=0.3, top_k=3, samples=20)
    for hypothesis in sampling(decoder, memory, SearchRequest([1]))[0]:
        token = hypothesis.tokens[0] if hypothesis.tokens else END
        assert hypothesis.log_probabilities == pytest.approx((math.log(PROBABILITIES[token]),))
