"""Functions that claims measure with."""

from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.lab.claim import Size, Trial
from seqloom.lab.claims import (
    alignment,
    cost,
    hard_attention,
    heads,
    parallel,
    related_languages,
    score_functions,
)
from seqloom.lab.claims.related_languages import DIRECTIONS, HELD_OUT, training_directions


def test_a_zipped_word_has_one_letter_of_every_string() -> None:
    source, target = heads.draw_zip_pair(Random(1))
    strings, words = source.split("-"), target.split()
    assert words == ["".join(column) for column in zip(*strings, strict=True)]
    assert (len(strings), len(words)) == (heads.STRINGS, heads.STRING_LENGTH)


def test_finite_differences_agree_with_autograd_only_if_attention_is_soft() -> None:
    settings = hard_attention.HardAttentionSettings(rows=50, keys=5, width=8)
    soft, hard = (
        hard_attention.measure(Trial(condition, 1, settings, Path(), lambda *_: None))
        for condition in (hard_attention.SOFT, hard_attention.NEAREST)
    )
    for name in hard_attention.MOVED:
        assert soft[f"changed by {name}"] == 1.0
        assert soft[f"slope error of {name}"] < 1e-6
        assert hard[f"changed by {name}"] == hard[name] == 0.0


def test_finite_differences_reveal_a_wrong_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The softmax here passes only half of its gradient on."""

    def halved(condition: str, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        weights = original(condition, queries, keys)
        return weights.detach() / 2 + weights / 2

    original = hard_attention.condition_weights
    monkeypatch.setattr(hard_attention, "condition_weights", halved)
    settings = hard_attention.HardAttentionSettings(rows=50, keys=5, width=8)
    trial = Trial(hard_attention.SOFT, 1, settings, Path(), lambda *_: None)
    assert hard_attention.measure(trial)["slope error of keys"] == pytest.approx(0.5, abs=0.01)


@given(st.floats(0.5, 3.0), st.floats(1e-6, 1e3))
def test_a_power_of_the_length_has_its_exponent_and_a_narrow_interval(
    exponent: float, factor: float
) -> None:
    lengths = [8.0, 64.0, 128.0, 256.0, 512.0]
    values = [factor * length**exponent for length in lengths]
    fit = cost.fit_exponent(lengths, [1e9, *values[1:]])  # only the four longest count
    assert fit.exponent == pytest.approx(exponent)
    assert fit.high - fit.low < 1e-6


def test_noise_widens_the_interval_of_an_exponent() -> None:
    lengths = [64.0, 128.0, 256.0, 512.0]
    fit = cost.fit_exponent(lengths, [1.1 * 64**2, 128**2 / 1.1, 1.1 * 256**2, 512**2 / 1.1])
    assert fit.low < 2.0 < fit.high
    assert fit.high - fit.low > 0.1


@pytest.mark.parametrize("size", ["tiny", "small", "full"])
def test_the_timed_models_have_the_same_number_of_parameters(size: Size) -> None:
    with torch.device("meta"):
        models = parallel.build_models(parallel.CLAIM.sizes[size], seed=1)
    counts = [sum(each.numel() for each in model.parameters()) for model in models.values()]
    assert max(counts) / min(counts) < 1.04


def test_rbf_ranks_as_the_dot_product_only_if_vectors_have_unit_length() -> None:
    assert score_functions.same_ranking(64, seed=1, unit_length=True) == 1.0
    assert score_functions.same_ranking(64, seed=1, unit_length=False) < 0.5


def test_only_the_largest_weight_at_the_aligned_token_counts_as_correct() -> None:
    weights = torch.tensor([0.1, 0.7, 0.2])
    correct, wrong = (
        alignment.compare_with_alignment(weights, source_index, row=1) for source_index in (1, 2)
    )
    assert (correct["correct"], wrong["correct"]) == (1.0, 0.0)
    assert (correct["diagonal"], wrong["diagonal"]) == (1.0, 0.0)
    assert correct["weight at +0"] == wrong["weight at -1"] == pytest.approx(0.7)
    assert wrong["weight at +1"] == 0.0  # no token follows the last one


def test_only_the_tested_direction_is_held_out() -> None:
    """Training includes the opposite direction and all other pairs of the two languages."""
    assert set(DIRECTIONS) - set(training_directions(related_languages.ZERO_SHOT)) == {HELD_OUT}
    assert len(DIRECTIONS) == 12
