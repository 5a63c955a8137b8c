"""The judgement of every claim: which numbers confirm it and which refute it."""

from pathlib import Path

import pytest
from fake_results import fake_results

from seqloom.lab.claims import (
    alignment,
    beam_width,
    bottleneck,
    context_uses,
    cost,
    early_mistake,
    embedding_noise,
    gradient_path,
    hard_attention,
    heads,
    parallel,
    positions,
    related_languages,
    reversed_source,
    scale,
    score_functions,
    short_beam,
    teacher_forcing,
)
from seqloom.lab.models.trained_models import ACCURACIES, LENGTHS
from seqloom.lab.registry import find_claim
from seqloom.lab.results import Results
from seqloom.lab.running.runner import Experiment, list_jobs, load_results, run_jobs

LONGEST = ACCURACIES[-1]


def falling_accuracy(loss: float) -> dict[str, float]:
    """Accuracies that fall linearly by this loss from the shortest to the longest."""
    return {name: 0.99 - loss * index / (len(LENGTHS) - 1) for index, name in enumerate(ACCURACIES)}


def test_bottleneck_is_confirmed_if_only_the_fixed_vector_loses_accuracy() -> None:
    numbers = {
        bottleneck.FIXED_VECTOR: falling_accuracy(0.6),
        bottleneck.ATTENTION: falling_accuracy(0.05),
    }
    assert bottleneck.CLAIM.judge(fake_results(numbers)).state == "confirmed"


def test_bottleneck_is_refuted_if_the_fixed_vector_loses_no_accuracy() -> None:
    numbers = {
        bottleneck.FIXED_VECTOR: falling_accuracy(-0.005),
        bottleneck.ATTENTION: falling_accuracy(0.005),
    }
    assert bottleneck.CLAIM.judge(fake_results(numbers)).state == "refuted"


def test_one_opposing_seed_leaves_the_bottleneck_undecided() -> None:
    high, low = falling_accuracy(0.6), falling_accuracy(0.05)
    supporting = fake_results({bottleneck.FIXED_VECTOR: high, bottleneck.ATTENTION: low}, seeds=4)
    opposing = fake_results({bottleneck.FIXED_VECTOR: low, bottleneck.ATTENTION: high}, seeds=1)
    others = [each for each in supporting.measurements if each.seed > 1]
    mixed = Results([*opposing.measurements, *others])
    assert bottleneck.CLAIM.judge(mixed).state == "undecided"


def scale_numbers(narrow_slope: float, wide_slope: float, matched: float) -> dict[str, float]:
    return {
        "slope at 4": narrow_slope,
        "slope at 1024": wide_slope,
        "matched at 1024": matched,
    }


def test_scale_is_confirmed_if_only_the_root_keeps_gradient_and_large_weights() -> None:
    numbers = {
        "1": scale_numbers(0.8, 0.05, 1.0),
        "√d": scale_numbers(0.9, 0.9, 1.0),
        "d": scale_numbers(1.0, 1.0, 0.15),
    }
    assert scale.CLAIM.judge(fake_results(numbers)).state == "confirmed"


def test_scale_is_refuted_if_the_unscaled_softmax_does_not_saturate() -> None:
    numbers = {
        "1": scale_numbers(0.8, 0.8, 1.0),
        "√d": scale_numbers(0.9, 0.9, 1.0),
        "d": scale_numbers(1.0, 1.0, 0.15),
    }
    assert scale.CLAIM.judge(fake_results(numbers)).state == "refuted"


def test_scale_is_refuted_if_a_key_gets_a_large_weight_with_division_by_d() -> None:
    numbers = {
        "1": scale_numbers(0.8, 0.05, 1.0),
        "√d": scale_numbers(0.9, 0.9, 1.0),
        "d": scale_numbers(1.0, 1.0, 0.9),
    }
    assert scale.CLAIM.judge(fake_results(numbers)).state == "refuted"


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, "confirmed"),
        ({score_functions.DOT: 0.1}, "refuted"),  # one score is worse than no attention
        ({score_functions.RBF: 0.7}, "refuted"),  # RBF and the scaled dot product differ
        ({score_functions.ONE_MATRIX: 0.7}, "refuted"),  # one matrix is not enough
        ({score_functions.ACTIVATION: 0.7}, "refuted"),  # an activation is not enough
        ({score_functions.DOT: 0.2}, "undecided"),  # one score is as good as no attention
        ({score_functions.ADDITIVE: 0.5}, "confirmed"),  # the documents do not rank this one
    ],
)
def test_score_functions_must_all_help_and_the_alike_ones_be_alike(
    changed: dict[str, float], state: str
) -> None:
    accuracies = {**dict.fromkeys(score_functions.SCORES, 0.9), **changed}
    numbers = {condition: {LONGEST: value} for condition, value in accuracies.items()}
    numbers[score_functions.NONE] = {LONGEST: 0.2}
    numbers[score_functions.RBF][score_functions.UNIT_RANKING] = 0.999
    assert score_functions.CLAIM.judge(fake_results(numbers)).state == state
    numbers[score_functions.RBF][score_functions.UNIT_RANKING] = 0.5
    assert score_functions.CLAIM.judge(fake_results(numbers)).state == "refuted"


@pytest.mark.parametrize(("worst", "state"), [(0.5, "confirmed"), (0.1, "refuted")])
def test_every_use_of_the_context_must_help(worst: float, state: str) -> None:
    numbers = {
        context_uses.NONE: {LONGEST: 0.2},
        **{use: {LONGEST: 0.9} for use in context_uses.USES},
    }
    numbers["new state"] = {LONGEST: worst}
    assert context_uses.CLAIM.judge(fake_results(numbers)).state == state


def position_numbers(seen: float, beyond: float, growth: float) -> dict[str, float]:
    widths = zip(positions.WIDTHS.values(), (32.0, 32.0 * growth), strict=True)
    return {positions.SEEN: seen, positions.BEYOND: beyond, **dict(widths)}


@pytest.mark.parametrize(
    ("condition", "changed", "state"),
    [
        (positions.GRU, (0.1, 0.1, 1.0), "confirmed"),  # not judged
        (positions.ROTARY, (0.1, 0.1, 1.0), "confirmed"),  # not judged
        (positions.LEARNED, (0.1, 0.1, 1.0), "refuted"),  # worse than no positions
        (positions.NO_POSITIONS, (0.99, 0.1, 1.0), "refuted"),  # positions are not needed
        (positions.ONE_HOT, (0.9, 0.8, 2.0), "refuted"),  # better beyond training
        (positions.ONE_HOT, (0.9, 0.1, 1.0), "refuted"),  # does not grow
        (positions.SINES_APPENDED, (0.9, 0.5, 2.0), "refuted"),  # grows
        (positions.SINES_ADDED, (0.9, 0.05, 1.0), "refuted"),  # worse beyond training
        (positions.SINES_ADDED, (0.9, 0.1, 1.0), "undecided"),  # as bad beyond training
    ],
)
def test_positions_must_help_and_sines_work_beyond_training(
    condition: str, changed: tuple[float, float, float], state: str
) -> None:
    numbers = {each: position_numbers(0.9, 0.1, 1.0) for each in positions.CONDITIONS}
    numbers[positions.NO_POSITIONS] = position_numbers(0.2, 0.1, 1.0)
    numbers[positions.ONE_HOT] = position_numbers(0.9, 0.1, 2.0)
    for sines in (positions.SINES_APPENDED, positions.SINES_ADDED):
        numbers[sines] = position_numbers(0.9, 0.5, 1.0)
    assert positions.CLAIM.judge(fake_results(numbers)).state == "confirmed"
    numbers[condition] = position_numbers(*changed)
    assert positions.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize(
    ("four", "eight", "state"),
    [
        (45.5, 45.8, "confirmed"),
        (45.5, 24.0, "refuted"),
        (24.0, 45.8, "refuted"),
        (30.0, 45.8, "undecided"),  # as good as one head
    ],
)
def test_several_heads_must_score_higher_than_one(four: float, eight: float, state: str) -> None:
    means = dict(zip(heads.HEADS, (30.0, four, eight, 45.4), strict=True))
    numbers = {condition: {"mean": mean} for condition, mean in means.items()}
    assert heads.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize(
    ("copy", "reverse", "swap", "state"),
    [
        (0.9, 0.9, 0.9, "confirmed"),
        (0.3, 0.9, 0.9, "refuted"),  # the diagonal is missed
        (0.9, 0.05, 0.9, "refuted"),  # the diagonal would be better
        (0.9, 0.9, 0.55, "refuted"),  # the diagonal would be better
    ],
)
def test_alignments_must_be_correct_and_better_than_the_diagonal(
    copy: float, reverse: float, swap: float, state: str
) -> None:
    numbers = {
        alignment.COPY: {"correct": copy, "diagonal": 1.0},
        alignment.REVERSE: {"correct": reverse, "diagonal": 0.1},
        alignment.SWAP: {"correct": swap, "diagonal": 0.6},
    }
    assert alignment.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize(
    ("related", "unrelated", "two_pivots", "one_pivot", "state"),
    [
        (0.8, 0.6, 0.9, 0.9, "confirmed"),
        (0.4, 0.3, 0.9, 0.9, "refuted"),  # related data do not help
        (0.8, 0.9, 0.9, 0.9, "refuted"),  # unrelated data help more
        (0.8, 0.8, 0.9, 0.9, "undecided"),  # unrelated data help as much
        (0.8, 0.6, 0.1, 0.9, "refuted"),  # zero-shot translation fails with two pivots
        (0.8, 0.6, 0.9, 0.1, "refuted"),  # zero-shot translation fails with one pivot
        (0.8, 0.6, 0.5 / (1 + 3e-6), 0.9, "undecided"),
    ],
)
def test_a_related_pair_must_help_more_than_an_unrelated_one_and_zero_shot_must_work(
    related: float, unrelated: float, two_pivots: float, one_pivot: float, state: str
) -> None:
    accuracies = {
        related_languages.ALONE: 0.5,
        related_languages.WITH_RELATED: related,
        related_languages.WITH_UNRELATED: unrelated,
        related_languages.SUPERVISED: 0.95,
        related_languages.ZERO_SHOT: two_pivots,
        related_languages.ONE_PIVOT: one_pivot,
    }
    numbers = {condition: {"word accuracy": value} for condition, value in accuracies.items()}
    assert related_languages.CLAIM.judge(fake_results(numbers, seeds=5)).state == state


@pytest.mark.parametrize(
    ("training", "unseen", "state"),
    [(3.0, 60.0, "confirmed"), (3.0, 110.0, "refuted"), (1.0, 90.0, "refuted")],
)
def test_noise_must_narrow_the_gap_and_help_unseen_sentences(
    training: float, unseen: float, state: str
) -> None:
    train_name, test_name = embedding_noise.TRAIN_PERPLEXITY, embedding_noise.TEST_PERPLEXITY
    numbers = {
        embedding_noise.NO_NOISE: {train_name: 1.5, test_name: 100.0},
        embedding_noise.SOME_NOISE: {train_name: training, test_name: unseen},
    }
    assert embedding_noise.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize(
    ("bleus", "log_p", "state"),
    [
        ((33.0, 34.5, 34.8), (-1.0, -0.9, -0.8), "confirmed"),
        ((33.0, 32.0, 31.8), (-1.0, -0.9, -0.8), "refuted"),  # a beam lowers BLEU
        ((33.0, 33.5, 36.0), (-1.0, -0.9, -0.8), "refuted"),  # most of the gain comes later
        ((33.0, 34.5, 34.8), (-1.0, -0.9, -0.95), "refuted"),  # wider and less probable
    ],
)
def test_a_beam_must_find_more_probable_and_better_outputs(
    bleus: tuple[float, ...], log_p: tuple[float, ...], state: str
) -> None:
    widths = (beam_width.GREEDY, beam_width.NARROW, beam_width.WIDE)
    numbers = {
        width: {beam_width.BLEU: bleu, beam_width.LOG_P: value}
        for width, bleu, value in zip(widths, bleus, log_p, strict=True)
    }
    assert beam_width.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize(
    ("score", "perplexity", "state"),
    [(30.6, 4.7, "confirmed"), (20.0, 4.7, "refuted"), (30.6, 7.0, "refuted")],
)
def test_in_reverse_the_score_must_rise_and_perplexity_fall(
    score: float, perplexity: float, state: str
) -> None:
    numbers = {
        reversed_source.FORWARD: {"score": 25.9, "perplexity": 5.8},
        reversed_source.REVERSED: {"score": score, "perplexity": perplexity},
    }
    assert reversed_source.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize(
    ("free_running", "scheduled", "state"),
    [
        (20.0, 0.4, "confirmed"),
        (60.0, 0.4, "refuted"),  # free running is faster
        (20.0, 0.1, "refuted"),  # scheduled sampling is less robust
        (40.0, 0.4, "undecided"),  # both are equally fast
        (20.0, 0.2, "undecided"),  # both are equally robust
    ],
)
def test_teacher_forcing_must_be_faster_and_scheduled_sampling_more_robust(
    free_running: float, scheduled: float, state: str
) -> None:
    speed, robustness = "mean exact match", "after an error"
    numbers = {
        teacher_forcing.TEACHER_FORCING: {speed: 40.0, robustness: 0.2},
        teacher_forcing.FREE_RUNNING: {speed: free_running, robustness: 0.3},
        teacher_forcing.SCHEDULED_SAMPLING: {speed: 30.0, robustness: scheduled},
    }
    assert teacher_forcing.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize(
    ("errors", "later", "beam", "samples", "state"),
    [
        (0.5, 0.5, 0.8, 0.7, "confirmed"),
        (0.1, 0.5, 0.8, 0.7, "refuted"),  # the rest is better after a wrong word
        (0.5, 0.1, 0.8, 0.7, "refuted"),  # later words are better after a wrong word
        (0.5, 0.5, 0.5, 0.4, "refuted"),  # a beam is worse than greedy search
        (0.5, 0.5, 0.8, 0.9, "refuted"),  # as many samples are better than a beam
        (0.5, 0.2, 0.8, 0.7, "undecided"),  # later words are unaffected
        (0.5, 0.5, 0.6, 0.4, "undecided"),  # a beam is as good as greedy search
    ],
)
def test_a_wrong_word_must_affect_later_ones_and_a_beam_must_help(
    errors: float, later: float, beam: float, samples: float, state: str
) -> None:
    numbers = {
        early_mistake.OWN: {"errors": 0.2, "later errors": 0.2},
        early_mistake.WRONG: {"errors": errors, "later errors": later},
        early_mistake.WRONG_BEAM: {"errors": 0.9, "later errors": 0.9},  # not judged
        early_mistake.GREEDY: {"valid": 0.6},
        early_mistake.SAMPLES: {"valid": samples},
        early_mistake.BEAM: {"valid": beam},
    }
    assert early_mistake.CLAIM.judge(fake_results(numbers)).state == state


def beam_numbers(lengths: tuple[float, ...], bleus: tuple[float, ...]) -> dict[str, float]:
    return {
        **dict(zip(short_beam.LENGTH_RATIOS, lengths, strict=True)),
        **dict(zip(short_beam.BLEUS, bleus, strict=True)),
    }


DIVIDED_BY_LENGTH = beam_numbers((1.0, 1.0, 0.99, 0.99, 0.99), (30, 31, 32, 32, 32))


@pytest.mark.parametrize(
    ("sums", "state"),
    [
        (beam_numbers((1.0, 0.9, 0.8, 0.7, 0.6), (30, 30, 29, 27, 25)), "confirmed"),
        (beam_numbers((1.0, 1.0, 1.1, 1.2, 1.3), (30, 30, 29, 27, 25)), "refuted"),  # longer
        (beam_numbers((1.0, 0.9, 0.8, 0.7, 0.6), (30, 31, 32, 33, 34)), "refuted"),  # better
    ],
)
def test_sums_of_log_probabilities_must_shorten_outputs_and_lower_bleu(
    sums: dict[str, float], state: str
) -> None:
    numbers = {short_beam.SUM: sums, short_beam.MEAN: DIVIDED_BY_LENGTH}
    assert short_beam.CLAIM.judge(fake_results(numbers)).state == state


NO_MATCH = {
    **dict.fromkeys(("queries", "keys", "values", "total weight"), 0.0),
    **{f"changed by {name}": 0.0 for name in hard_attention.MOVED},
    **{f"slope error of {name}": 0.0 for name in hard_attention.MOVED},
}
HARD = {**NO_MATCH, "values": 3.0, "total weight": 1.0}
SOFT = {
    **dict.fromkeys(("queries", "keys", "values", "total weight"), 1.0),
    **{f"changed by {name}": 1.0 for name in hard_attention.MOVED},
    **{f"slope error of {name}": 1e-9 for name in hard_attention.MOVED},
}


@pytest.mark.parametrize(
    ("hard", "soft", "state"),
    [
        (HARD, SOFT, "confirmed"),
        ({**HARD, "keys": 0.1}, SOFT, "refuted"),  # hard attention with a gradient at keys
        (HARD, {**SOFT, "queries": 0.0}, "refuted"),  # soft attention without one at queries
        ({**HARD, "values": 0.0}, SOFT, "refuted"),  # no gradient at the selected value
        ({**HARD, "changed by keys": 0.5}, SOFT, "refuted"),  # a small step changes the loss
        (HARD, {**SOFT, "changed by queries": 0.2}, "refuted"),  # a small step changes nothing
        (HARD, {**SOFT, "slope error of keys": 0.3}, "refuted"),  # autograd is wrong
        (HARD, {**SOFT, "slope error of keys": 1e-3 / (1 + 2e-6)}, "undecided"),
    ],
)
def test_hard_attention_must_have_no_gradient_and_soft_attention_one(
    hard: dict[str, float], soft: dict[str, float], state: str
) -> None:
    numbers = {
        hard_attention.EXACT: NO_MATCH,
        hard_attention.NEAREST: hard,
        hard_attention.BEST: hard,
        hard_attention.SOFT: soft,
    }
    assert hard_attention.CLAIM.judge(fake_results(numbers)).state == state


def decaying_gradient(exponent: float) -> dict[str, float]:
    """A gradient that falls with this power of the length."""
    lengths = zip(gradient_path.GRADIENTS, gradient_path.LENGTHS, strict=True)
    return {name: 1 / length**exponent for name, length in lengths}


@pytest.mark.parametrize(
    ("recurrence", "attention", "state"),
    [(6, 1, "confirmed"), (1, 1, "refuted"), (6, 6, "refuted")],
)
def test_the_gradient_must_vanish_along_the_recurrence_and_not_through_attention(
    recurrence: float, attention: float, state: str
) -> None:
    numbers = {
        gradient_path.RECURRENCE: decaying_gradient(recurrence),
        gradient_path.ATTENTION: decaying_gradient(attention),
        gradient_path.TRANSFORMER: decaying_gradient(1),
    }
    assert gradient_path.CLAIM.judge(fake_results(numbers)).state == state


def cost_numbers(operations: float, low: float, high: float) -> dict[str, float]:
    return {
        "exponent of operations": operations,
        "exponent of seconds, low": low,
        "exponent of seconds, high": high,
    }


@pytest.mark.parametrize(
    ("attention", "recurrent", "state"),
    [
        ((2.0, 1.8, 2.2), (1.0, 0.9, 1.1), "confirmed"),
        ((1.0, 1.8, 2.2), (1.0, 0.9, 1.1), "refuted"),  # operations of attention
        ((2.0, 1.8, 2.2), (2.0, 0.9, 1.1), "refuted"),  # operations of the recurrent layer
        ((2.0, 0.9, 1.1), (1.0, 0.9, 1.1), "refuted"),  # time of attention
        ((2.0, 1.8, 2.2), (1.0, 1.8, 2.2), "refuted"),  # time of the recurrent layer
        ((2.0, 1.5 / (1 + 2e-6), 2.2), (1.0, 0.9, 1.1), "undecided"),  # seeds on both sides
    ],
)
def test_operations_and_time_of_attention_must_grow_quadratically(
    attention: tuple[float, float, float], recurrent: tuple[float, float, float], state: str
) -> None:
    numbers = {
        cost.ATTENTION: cost_numbers(*attention),
        cost.RECURRENT: cost_numbers(*recurrent),
    }
    assert cost.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize(
    ("recurrent", "transformer", "short_ratio", "long_ratio", "state"),
    [
        (50.0, 1.0, 0.5, 2.0, "confirmed"),
        (1.0, 1.0, 0.5, 2.0, "refuted"),  # the recurrent network needs no more operations
        (50.0, 50.0, 0.5, 2.0, "refuted"),  # the Transformer needs more operations
        (50.0, 1.0, 3.0, 2.0, "refuted"),  # the recurrent network is slow for short sentences
        (50.0, 1.0, 0.5, 0.8, "refuted"),  # the recurrent network is faster
        (50.0, 1.0, 0.5, 1 / (1 + 2e-6), "undecided"),  # both take the same time
    ],
)
def test_only_the_recurrent_network_may_become_slower_for_longer_sentences(
    recurrent: float, transformer: float, short_ratio: float, long_ratio: float, state: str
) -> None:
    names = [f"operations, {name}" for name in (parallel.RECURRENT, parallel.TRANSFORMER)]
    numbers = {
        parallel.SHORTEST: {**dict.fromkeys(names, 1.0), "time ratio": short_ratio},
        parallel.LONGEST: {
            **dict(zip(names, (recurrent, transformer), strict=True)),
            "time ratio": long_ratio,
        },
    }
    assert parallel.CLAIM.judge(fake_results(numbers)).state == state


@pytest.mark.parametrize("name", ["hard-attention", "scale"])
def test_claims_without_training_are_confirmed_at_the_smallest_size(
    name: str, tmp_path: Path
) -> None:
    """These measurements are nearly free of noise, so that the size does not matter."""
    experiment = Experiment(tmp_path, name, "tiny")
    run_jobs(list_jobs(experiment, range(1, 4)), 1, lambda job, activity, fraction: None)
    results = load_results(experiment, range(1, 4))
    assert find_claim(name).judge(results).state == "confirmed"
