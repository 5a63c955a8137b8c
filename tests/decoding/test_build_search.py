"""From a recipe to a search."""

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
from seqloom.decoding.sample import Sample
from seqloom.decoding.search import Search


def test_the_recipe_decides_which_search_is_built() -> None:
    rules = {"min_length": 2, "no_repeat_ngram": 3, "allow_unknown": True}
    expected = Rules(2, 3, True)
    built: list[tuple[SearchConfig, Search]] = [
        (GreedyConfig(**rules, length_exponent=0.5), Greedy(0.5, expected)),
        (BeamConfig(**rules, width=4, finished=7), Beam(4, 7, 1.0, expected)),
        (ExhaustiveConfig(**rules, max_sequences=9), Exhaustive(9, 1.0, expected)),
        (
            SampleConfig(
                **rules, temperature=0.5, top_k=3, top_p=0.9, epsilon=0.1, samples=2, seed=8
            ),
            Sample(0.5, 3, 0.9, 0.1, 2, 8, 1.0, expected),
        ),
    ]
    for config, search in built:
        assert build_search(config) == search


def test_a_minimum_that_leaves_no_room_for_end_is_refused() -> None:
    with pytest.raises(
        ValidationError, match="min_length = 5 leaves no room for END within max_length = 5"
    ):
        BeamConfig(min_length=5, max_length=5)
    build_search(BeamConfig(min_length=5, max_length=6))
    build_search(GreedyConfig(min_length=500))
