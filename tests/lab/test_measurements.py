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
    early_mistake,
    hard_attention,
    heads,
    parallel,
    positions,
    related_languages,
    score_functions,
)
from seqloom.lab.models.toy_languages import Clause, sentence, word_order


def test_a_zipped_word_has_one_letter_of_every_string() -> None:
    source, target = heads.draw_zip_pair(Random(1), length=9)
    strings, words = source.split("-"), target.split()
    letters = [each.rstrip(".") for each in strings]
    assert words == ["".join(column) for column in zip(*letters, strict=True)]
    assert {len(each) for each in strings} == {9}
    assert (len(strings), len(words)) == (heads.STRINGS, heads.WORDS)


@pytest.mark.parametrize("size", ["tiny", "small", "full"])
def test_the_letters_of_a_zipped_word_are_far_apart(size: Size) -> None:
    settings = heads.CLAIM.sizes[size]
    source, target = heads.draw_zip_pair(Random(1), settings.length)
    second, third = (index + 1 for index, token in enumerate(source) if token == "-")
    assert source[0] + source[second] + source[third] == target.split()[0]
    assert second > 50
    assert third > 100


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


@pytest.mark.parametrize("condition", [related_languages.ZERO_SHOT, related_languages.ONE_PIVOT])
def test_the_languages_of_the_zero_shot_test_never_meet_in_training(condition: str) -> None:
    trained = related_languages.training_directions(condition)
    tested = set(related_languages.TESTED)
    assert all(set(direction) != tested for direction in trained)
    assert tested <= {language for direction in trained for language in direction}


def test_the_unrelated_pair_shares_no_word_and_no_word_order_with_the_small_pair() -> None:
    small, unrelated = related_languages.SMALL_PAIR, related_languages.UNRELATED_PAIR
    clause = Clause(("the", "old", "man"), "sees", ("a", "red", "house"))
    sentences = [sentence(clause, language) for language in (*small, *unrelated)]
    words = [set(each.split()) for each in sentences]
    assert sum(len(each) for each in words) == len(set.union(*words))
    orders = [
        tuple(concept for _, concept in word_order(clause, language)) for language in unrelated
    ]
    others = [tuple(concept for _, concept in word_order(clause, language)) for language in small]
    assert len({*orders, *others}) == 4


def test_related_and_unrelated_data_have_the_same_size(tmp_path: Path) -> None:
    settings = related_languages.CLAIM.sizes["tiny"]
    trial = Trial(related_languages.WITH_UNRELATED, 1, settings, tmp_path, lambda *_: None)
    related_languages.write_corpora(trial)
    [folder] = tmp_path.iterdir()
    counts = {
        path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in folder.iterdir()
    }
    assert counts["en-fr.en"] == counts["dis-rem.dis"] == settings.large
    assert counts["en-isl.en"] == settings.small


CLAUSE = Clause(("the", "old", "man"), "sees", ("a", "house"))


def test_a_clause_has_eight_translations_with_agreement() -> None:
    valid = early_mistake.translations(CLAUSE)
    assert len(set(valid)) == len(valid) == 8
    assert ("man.m", "old.m", "the.m", "sees.m", "house.f", "a.f") in valid
    assert ("house.f", "a.f", "sees.passive.f", "man.m", "old.m", "the.m") in valid
    for words in valid:
        genders = [word[-1] for word in words]
        assert len(set(genders[:2])) == 1


def test_word_errors_count_against_the_closest_translation() -> None:
    valid = [("a", "b", "c"), ("x", "y")]
    assert early_mistake.word_errors(("a", "b", "c"), valid) == [False] * 3
    assert early_mistake.word_errors(("x", "y"), valid) == [False] * 2
    assert early_mistake.word_errors(("a", "q", "c"), valid) == [False, True, False]
    assert early_mistake.word_errors(("a", "b"), valid) == [False, False, True]  # a missing word
    assert early_mistake.word_errors(("x", "y", "z"), valid) == [False, False, True]


def test_one_hot_vectors_grow_with_the_number_of_positions_and_sines_do_not() -> None:
    one_hot, sines = (
        [positions.encoding_width(condition, count) for count in (32, 64)]
        for condition in (positions.ONE_HOT, positions.SINES_APPENDED)
    )
    assert one_hot == [32, 64]
    assert sines[0] == sines[1]
