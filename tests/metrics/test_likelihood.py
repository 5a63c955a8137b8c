"""Perplexity and related scores."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError
from seqloom.metrics.likelihood import (
    Likelihood,
    bits_per_character,
    bits_per_token,
    nats_per_character,
    nats_per_token,
    perplexity,
)


@given(st.integers(1, 10_000), st.integers(1, 500))
def test_perplexity_of_a_fair_die_is_its_number_of_sides(sides: int, tokens: int) -> None:
    rolls = Likelihood(-tokens * math.log(sides), tokens, 3 * tokens)
    assert perplexity(rolls).value == pytest.approx(sides)
    assert nats_per_token(rolls).value == pytest.approx(math.log(sides))
    assert bits_per_token(rolls).value == pytest.approx(math.log2(sides))
    assert nats_per_character(rolls).value == pytest.approx(math.log(sides) / 3)
    assert bits_per_character(rolls).value == pytest.approx(math.log2(sides) / 3)
    assert not perplexity(rolls).higher_is_better


def test_likelihoods_are_summed_before_dividing() -> None:
    total = Likelihood(-1.0, 1, 2) + Likelihood(-8.0, 8, 30)
    assert total == Likelihood(-9.0, 9, 32)
    assert perplexity(total).value == pytest.approx(math.e)


def test_perplexity_of_impossible_targets_is_infinite() -> None:
    assert perplexity(Likelihood(-1e6, 2, 2)).value == math.inf
    assert perplexity(Likelihood(-math.inf, 2, 2)).value == math.inf


def test_targets_without_tokens_or_characters_cannot_be_scored() -> None:
    for score in [perplexity, nats_per_token, bits_per_token]:
        with pytest.raises(DataError, match="no tokens to predict"):
            score(Likelihood(0.0, 0, 4))
    for score in [nats_per_character, bits_per_character]:
        with pytest.raises(DataError, match="no characters to predict"):
            score(Likelihood(-3.0, 2, 0))
