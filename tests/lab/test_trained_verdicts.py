"""What would make the claims about trained models right or wrong."""

import pytest
from made_up_numbers import results

from seqloom.lab.claims import early_mistake, reversed_source, short_beam, teacher_forcing


@pytest.mark.parametrize(
    ("score", "perplexity", "state"),
    [(30.6, 4.7, "confirmed"), (20.0, 4.7, "refuted"), (30.6, 7.0, "refuted")],
)
def test_in_reverse_the_score_must_rise_and_perplexity_fall(
    score: float, perplexity: float, state: str
) -> None:
    made = {
        reversed_source.FORWARD: {"score": 25.9, "perplexity": 5.8},
        reversed_source.REVERSED: {"score": score, "perplexity": perplexity},
    }
    assert reversed_source.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(
    ("own_words", "mixture", "state"),
    [(20.0, 0.4, "confirmed"), (60.0, 0.4, "refuted"), (20.0, 0.1, "refuted")],
)
def test_the_truth_must_be_faster_and_the_mixture_more_robust(
    own_words: float, mixture: float, state: str
) -> None:
    made = {
        teacher_forcing.TRUTH: {"speed": 40.0, "rest after a mistake": 0.2},
        teacher_forcing.FREE: {"speed": own_words, "rest after a mistake": 0.3},
        teacher_forcing.MIXTURE: {"speed": 30.0, "rest after a mistake": mixture},
    }
    assert teacher_forcing.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(
    ("rest", "later", "beam", "state"),
    [
        (20.0, 0.1, 35.0, "confirmed"),
        (60.0, 0.1, 35.0, "refuted"),  # a wrong word does the rest good
        (20.0, 0.1, 29.0, "refuted"),  # a beam does harm
        (20.0, 0.2, 35.0, "undecided"),  # later on nothing is left of it
    ],
)
def test_a_wrong_word_must_cost_later_ones_and_a_beam_must_help(
    rest: float, later: float, beam: float, state: str
) -> None:
    made = {
        early_mistake.RIGHT: {"rest": 40.0, "later": 0.2},
        early_mistake.WRONG: {"rest": rest, "later": later},
        early_mistake.GREEDY: {"BLEU": 30.0},
        early_mistake.BEAM: {"BLEU": beam},
    }
    assert early_mistake.CLAIM.judge(results(made)).state == state


def searched(lengths: tuple[float, ...], bleus: tuple[float, ...]) -> dict[str, float]:
    named = (*zip(short_beam.LONG, lengths, strict=True), *zip(short_beam.GOOD, bleus, strict=True))
    return dict(named)


STEADY = searched((1.0, 1.0, 0.99, 0.99, 0.99), (30, 31, 32, 32, 32))


@pytest.mark.parametrize(
    ("sums", "state"),
    [
        (searched((1.0, 0.9, 0.8, 0.7, 0.6), (30, 30, 29, 27, 25)), "confirmed"),
        (searched((1.0, 1.0, 1.1, 1.2, 1.3), (30, 30, 29, 27, 25)), "refuted"),  # they grow
        (searched((1.0, 0.9, 0.8, 0.7, 0.6), (30, 31, 32, 33, 34)), "refuted"),  # and it helps
    ],
)
def test_sums_must_shorten_and_cost(sums: dict[str, float], state: str) -> None:
    made = {short_beam.SUM: sums, short_beam.MEAN: STEADY}
    assert short_beam.CLAIM.judge(results(made)).state == state
