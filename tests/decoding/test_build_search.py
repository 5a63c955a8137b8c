"""Building a search from a recipe."""

from typing import Any

import pytest
from pydantic import ValidationError

from seqloom.config.schema.decoding import (
    BeamConfig,
    ExhaustiveConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_search
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.rules import Rules
from seqloom.decoding.sampling import Sampling
from seqloom.decoding.search import Search


def test_search_has_the_values_of_the_recipe() -> None:
    rules: dict[str, Any] = {"min_length": 2, "no_repeat_ngram": 3, "allow_unknown": True}
    expected = Rules(2, 3, True)
    cases: list[tuple[SearchConfig, Search]] = [
        (GreedyConfig(**rules, length_penalty=0.5), Greedy(length_penalty=0.5, rules=expected)),
        (
            GreedyConfig(**rules, length_counts_end=True),
            Greedy(rules=expected, length_counts_end=True),
        ),
        (
            BeamConfig(**rules, length_counts_end=True),
            Beam(5, rules=expected, length_counts_end=True),
        ),
        (
            ExhaustiveConfig(**rules, length_counts_end=True),
            Exhaustive(rules=expected, length_counts_end=True),
        ),
        (
            SampleConfig(**rules, length_counts_end=True),
            Sampling(rules=expected, length_counts_end=True),
        ),
        (BeamConfig(**rules, width=4, finished=7), Beam(4, 7, rules=expected)),
        (ExhaustiveConfig(**rules, max_sequences=9), Exhaustive(9, rules=expected)),
        (
            SampleConfig(
                **rules, temperature=0.5, top_k=3, top_p=0.9, epsilon=0.1, samples=2, seed=8
            ),
            Sampling(0.5, 3, 0.9, 0.1, 2, 8, rules=expected),
        ),
    ]
    for config, search in cases:
        assert build_search(config) == search


def test_min_length_must_be_below_max_length() -> None:
    with pytest.raises(ValidationError, match="min_length"):
        BeamConfig(min_length=5, max_length=5)
    assert build_search(BeamConfig(min_length=5, max_length=6)) == Beam(5, rules=Rules(5))
    assert build_search(GreedyConfig(min_length=500)) == Greedy(rules=Rules(500))
