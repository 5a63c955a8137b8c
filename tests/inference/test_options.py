"""Options of a prediction: the search, the number of outputs and their validation."""

from pathlib import Path
from typing import Any

import pytest

from seqloom.config.schema.decoding import BeamConfig, EngineConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.inference.options import PredictionOptions
from seqloom.inference.search_settings import (
    beam_config,
    check_n_best,
    check_texts,
    greedy_config,
    resolve_decoding,
    resolve_engine,
    sampling_config,
)


def test_too_few_hypotheses_for_n_best_are_an_error() -> None:
    with pytest.raises(ConfigError, match="greedy search returns one output per text, not 2"):
        check_n_best(GreedyConfig(), 2)
    with pytest.raises(ConfigError, match="3 outputs per text need 3 samples or more, not 2"):
        check_n_best(SampleConfig(samples=2), 3)
    with pytest.raises(ConfigError, match="7 outputs per text need a beam width of 7 or more, not"):
        check_n_best(BeamConfig(width=5), 7)


@pytest.mark.parametrize("n_best", [0, -1])
def test_n_best_below_1_is_an_error(n_best: int) -> None:
    with pytest.raises(ConfigError, match=f"n_best must be 1 or more, not {n_best}"):
        check_n_best(SampleConfig(), n_best)


@pytest.mark.parametrize("width", [0, 2.5, "5"])
def test_invalid_beam_width_is_an_error(width: Any) -> None:
    with pytest.raises(ConfigError, match=f"must be an integer of 1 or more, not {width!r}"):
        resolve_decoding(GreedyConfig(), PredictionOptions(beam=width))


def test_decoding_must_be_a_config() -> None:
    decoding: Any = {"kind": "greedy"}
    with pytest.raises(ConfigError, match=r"must be a config .* not \{'kind'"):
        resolve_decoding(GreedyConfig(), PredictionOptions(decoding=decoding))


def test_texts_must_be_a_list() -> None:
    for text in ("abc", Path("abc")):
        with pytest.raises(DataError, match=r"texts must be a list: write \[text\]"):
            check_texts(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, b"abc"])
def test_texts_must_be_strings_or_paths(value: Any) -> None:
    with pytest.raises(DataError, match=rf"texts\[1\] is not a str but {value!r}"):
        check_texts(["abc", value])


def test_other_searches_keep_the_rules_of_the_recipe() -> None:
    recipe = BeamConfig(
        width=7, max_length=9, min_length=2, length_penalty=0.5, length_counts_end=True
    )
    for search in (greedy_config(recipe), sampling_config(recipe, 3), beam_config(recipe, 2)):
        assert (search.max_length, search.min_length, search.length_penalty) == (9, 2, 0.5)
        assert search.length_counts_end
    assert sampling_config(recipe, 3).samples == 3
    assert beam_config(recipe, 2).width == 2
    assert resolve_decoding(recipe, PredictionOptions()) is recipe
    assert resolve_decoding(
        recipe, PredictionOptions(beam=3, decoding=GreedyConfig())
    ) == BeamConfig(width=3)


def test_unknown_engine_is_an_error() -> None:
    with pytest.raises(
        ConfigError,
        match=r"unknown engine 'fast'\. Available: auto, torch, compiled, ctranslate2",
    ):
        resolve_engine(EngineConfig(), "fast")
