"""Utilities for minimum Bayes risk decoding equal sacrebleu's sentence scores."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seqloom.metrics.mbr_utility import Utility, expected_utility, pairwise_utility

SENTENCES = [
    "A man sits on a bench.",
    "A man is sitting on a bench.",
    "a man, sitting",
    "Two dogs run through the deep snow!",
    "x",
    "",
    "A man sits on a bench. A man sits on a bench.",
]
text = st.text("ab .,'", max_size=12) | st.sampled_from(SENTENCES)


def sacrebleu_score(hypothesis: str, reference: str, utility: Utility) -> float:
    metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)
    return float(metric.sentence_score(hypothesis, [reference]).score)


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@given(texts=st.lists(text, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_pairwise_utility_equals_sacrebleu(texts: list[str], utility: Utility) -> None:
    scores = pairwise_utility(texts, utility)
    for i, hypothesis in enumerate(texts):
        for j, reference in enumerate(texts):
            expected = sacrebleu_score(hypothesis, reference, utility)
            assert scores[i, j] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@given(texts=st.lists(text, min_size=2, max_size=6))
@settings(max_examples=40, deadline=None)
def test_expected_utility_is_the_mean_over_all_other_texts(
    texts: list[str], utility: Utility
) -> None:
    values = expected_utility(texts, utility)
    for index, (hypothesis, value) in enumerate(zip(texts, values, strict=True)):
        others = [*texts[:index], *texts[index + 1 :]]
        scores = [sacrebleu_score(hypothesis, other, utility) for other in others]
        assert value == pytest.approx(sum(scores) / len(scores), abs=1e-6)


def test_expected_utility_of_a_single_text_is_100() -> None:
    assert expected_utility(["anything"], "chrf") == [100.0]
