"""How like each other texts are: sacrebleu's numbers, for all pairs at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seqloom.metrics.utility import Utility, expected, pairwise

SENTENCES = [
    "A man sits on a bench.",
    "A man is sitting on a bench.",
    "a man, sitting",
    "Two dogs run through the deep snow!",
    "x",
    "",
    "A man sits on a bench. A man sits on a bench.",
]
texts = st.lists(st.text("ab .,'", max_size=12) | st.sampled_from(SENTENCES), max_size=6)


def theirs(hypothesis: str, reference: str, utility: Utility) -> float:
    metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)
    return float(metric.sentence_score(hypothesis, [reference]).score)


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@given(some=texts)
@settings(max_examples=60, deadline=None)
def test_every_pair_is_scored_as_sacrebleu_scores_it(some: list[str], utility: Utility) -> None:
    if not some:
        return
    found = pairwise(some, utility)
    for i, hypothesis in enumerate(some):
        for j, reference in enumerate(some):
            assert found[i, j] == pytest.approx(theirs(hypothesis, reference, utility), abs=1e-6)


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@given(some=texts)
@settings(max_examples=40, deadline=None)
def test_what_is_expected_is_the_mean_over_all_the_others(
    some: list[str], utility: Utility
) -> None:
    if len(some) < 2:
        return
    for place, (text, value) in enumerate(zip(some, expected(some, utility), strict=True)):
        others = [*some[:place], *some[place + 1 :]]
        mean = sum(theirs(text, other, utility) for other in others) / len(others)
        assert value == pytest.approx(mean, abs=1e-6)


def test_one_alone_has_nothing_to_be_unlike() -> None:
    assert expected(["anything"], "chrf") == [100.0]
