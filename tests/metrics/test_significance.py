"""Paired bootstrap resampling."""

import pytest

from seqloom.core.errors import DataError
from seqloom.metrics.bleu import bleu, chrf
from seqloom.metrics.significance import compare

TRUTH = [f"sentence {number} has a few words and ends in {number * 7}" for number in range(60)]
REFERENCES = [[line] for line in TRUTH]
GOOD = [line.replace("few", "bunch") if n % 6 == 0 else line for n, line in enumerate(TRUTH)]
BAD = [line.replace("has a few", "with some") for line in TRUTH]


def test_a_clear_difference_is_significant_and_has_the_right_sign() -> None:
    by_bleu, by_chrf = compare(BAD, GOOD, REFERENCES, samples=200)
    assert by_bleu.metric == "BLEU"
    assert by_chrf.metric == "chrF2"
    for found, metric in [(by_bleu, bleu), (by_chrf, chrf)]:
        old, new = metric(BAD, REFERENCES).value, metric(GOOD, REFERENCES).value
        assert found.delta == pytest.approx(new - old)
        assert found.delta > 0
        assert found.p_value < 0.05
        assert found.system.mean == pytest.approx(new, abs=3)
        assert found.baseline.mean == pytest.approx(old, abs=3)
        assert found.system.interval > 0
        assert "|bs:200|" in found.signature
        assert "|version:" in found.signature
    back = compare(GOOD, BAD, REFERENCES, samples=200)
    assert [one.delta for one in back] == pytest.approx([-by_bleu.delta, -by_chrf.delta])


def test_a_system_does_not_differ_from_itself() -> None:
    for found in compare(GOOD, GOOD, REFERENCES, samples=50):
        assert found.delta == 0
        assert found.p_value == 1


def test_a_swap_of_equally_bad_sentences_is_luck() -> None:
    """Each system is wrong where the other is right, equally often."""
    even = [bad if n % 2 else true for n, (bad, true) in enumerate(zip(BAD, TRUTH, strict=True))]
    odd = [true if n % 2 else bad for n, (bad, true) in enumerate(zip(BAD, TRUTH, strict=True))]
    for found in compare(even, odd, REFERENCES, samples=200):
        assert found.p_value > 0.05


def test_references_may_be_ragged_and_case_may_be_ignored() -> None:
    ragged = [[line, line.upper()] if n % 3 else [line] for n, line in enumerate(TRUTH)]
    shouted = [line.upper() for line in TRUTH]
    strict = compare(GOOD, shouted, ragged, samples=50)[0]
    lax = compare(GOOD, shouted, ragged, lowercase=True, samples=50)[0]
    assert strict.delta < 0 < lax.delta
    assert "nrefs:var|bs:50|seed:12345|case:lc" in lax.signature


def test_systems_that_cannot_be_compared_are_refused_together() -> None:
    with pytest.raises(DataError) as caught:
        compare([], TRUTH[1:], REFERENCES)
    assert "baseline: cannot be scored: there are no hypotheses" in str(caught.value)
    assert "system: cannot be scored: there are 59 hypotheses" in str(caught.value)
