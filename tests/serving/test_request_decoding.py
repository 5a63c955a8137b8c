"""The decoding configuration of a request."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.inference.options import PredictionOptions
from seqloom.serving.api.decoding import choose_decoding
from seqloom.serving.errors import ApiError


def run_with(decoding: DecodingConfig) -> Any:
    return SimpleNamespace(config=SimpleNamespace(decoding=decoding))


def test_the_runs_decoding_is_the_default() -> None:
    decoding = BeamConfig(width=3, length_penalty=0.7)
    assert choose_decoding(run_with(decoding), PredictionOptions()) == decoding


def test_beam_and_length_normalisation_are_changed() -> None:
    chosen = choose_decoding(
        run_with(GreedyConfig()),
        PredictionOptions(2, beam=4, length_penalty=0.25, length_counts_end=True),
    )
    assert isinstance(chosen, BeamConfig)
    assert (chosen.width, chosen.length_penalty, chosen.length_counts_end) == (4, 0.25, True)
    run = run_with(BeamConfig(length_counts_end=True))
    options = PredictionOptions(2, beam=4)
    assert choose_decoding(run, options).length_counts_end
    assert not choose_decoding(run, replace(options, length_counts_end=False)).length_counts_end


def test_the_beam_is_widened_for_n_best() -> None:
    assert choose_decoding(run_with(BeamConfig(width=2)), PredictionOptions(5)).beam_width == 5
    assert choose_decoding(run_with(BeamConfig(width=7)), PredictionOptions(5)).beam_width == 7
    with pytest.raises(ApiError, match="5 outputs need a beam of 5 or more, not 2"):
        choose_decoding(run_with(BeamConfig(width=7)), PredictionOptions(5, beam=2))


def test_only_greedy_and_beam_search_have_a_width() -> None:
    assert GreedyConfig().beam_width == 1
    assert SampleConfig().beam_width is None
