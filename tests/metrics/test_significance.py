"""Paired bootstrap resampling."""

import pytest

from seqloom.core.errors import DataError
from seqloom.metrics.bleu import bleu, chrf
from seqloom.metrics.significance import compare_systems

LINES = [f"sentence {number} has a few words and ends in {number * 7}" for number in range(60)]
REFERENCES = [[line] for line in LINES]
GOOD = [line.replace("few", "bunch") if n % 6 == 0 else line for n, line in enumerate(LINES)]
BAD = [line.replace("has a few", "with some") for line in LINES]


def test_clear_difference_is_significant_and_has_the_right_sign() -> None:
    by_bleu, by_chrf = compare_systems(BAD, GOOD, REFERENCES, samples=200)
    assert by_bleu.metric == "BLEU"
    assert by_chrf.metric == "chrF2"
    for comparison, metric in [(by_bleu, bleu), (by_chrf, chrf)]:
        bad, good = metric(BAD, REFERENCES).value, metric(GOOD, REFERENCES).value
        assert comparison.delta == pytest.approx(good - bad)
        assert comparison.delta > 0
        assert comparison.p_value < 0.05
        assert comparison.system.mean == pytest.approx(good, abs=3)
        assert comparison.baseline.mean == pytest.approx(bad, abs=3)
        assert comparison.system.interval > 0
        assert "|bs:200|" in comparison.signature
        assert "|version:" in comparison.signature
    swapped = compare_systems(GOOD, BAD, REFERENCES, samples=200)
    assert [comparison.delta for comparison in swapped] == pytest.approx(
        [-by_bleu.delta, -by_chrf.delta]
    )


def test_system_does_not_differ_from_itself() -> None:
    for comparison in compare_systems(GOOD, GOOD, REFERENCES, samples=50):
        assert comparison.delta == 0
        assert comparison.p_value == 1


def test_systems_with_equally_many_errors_do_not_differ_significantly() -> None:
    """Each system is wrong where the other is correct, equally often."""
    even = [bad if n % 2 else line for n, (bad, line) in enumerate(zip(BAD, LINES, strict=True))]
    odd = [line if n % 2 else bad for n, (bad, line) in enumerate(zip(BAD, LINES, strict=True))]
    for comparison in compare_systems(even, odd, REFERENCES, samples=200):
        assert comparison.p_value > 0.05


def test_references_may_be_ragged_and_case_may_be_ignored() -> None:
    ragged = [[line, line.upper()] if n % 3 else [line] for n, line in enumerate(LINES)]
    upper_case = [line.upper() for line in LINES]
    with_case = compare_systems(GOOD, upper_case, ragged, samples=50)[0]
    without_case = compare_systems(GOOD, upper_case, ragged, lowercase=True, samples=50)[0]
    assert with_case.delta < 0 < without_case.delta
    assert "nrefs:var|bs:50|seed:12345|case:lc" in without_case.signature


def test_problems_of_both_systems_are_reported() -> None:
    with pytest.raises(DataError) as caught:
        compare_systems([], LINES[1:], REFERENCES)
    assert "baseline: the outputs cannot be scored: there are no hypotheses" in str(caught.value)
    assert "system: the outputs cannot be scored: there are 59 hypotheses" in str(caught.value)
