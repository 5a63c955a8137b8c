"""Reports: tables, comparisons with published figures, and HTML pages."""

from dataclasses import replace

import pytest
from fake_results import fake_results

from seqloom.lab.claim import Column, PublishedFigure, PublishedResult
from seqloom.lab.claims.scale import CLAIM
from seqloom.lab.reporting.report import ClaimReport, compare_with_published
from seqloom.lab.reporting.report_files import render_html
from seqloom.lab.results import Results
from seqloom.lab.verdict import State, Verdict

PUBLISHED = PublishedResult(
    "Author 2015",
    "English to French",
    "x",
    (
        PublishedFigure("one", 20.0, "1"),
        PublishedFigure("root", 30.0, "√d"),
        PublishedFigure("all", 25.0, "d"),
    ),
)


def scale_numbers(one: float, root: float, width: float) -> dict[str, dict[str, float]]:
    return {"1": {"x": one}, "√d": {"x": root}, "d": {"x": width}}


def test_figures_in_the_published_order_are_reported_as_the_same_order() -> None:
    results = fake_results(scale_numbers(1, 3, 2))
    comparison = compare_with_published(PUBLISHED, results, "confirmed")
    assert comparison.summary == "The order is the same."
    assert comparison.what == "x, English to French"
    assert [round(figure.ours) for figure in comparison.figures] == [1, 3, 2]


def test_pairs_in_the_opposite_order_are_named() -> None:
    results = fake_results(scale_numbers(2, 3, 1))
    comparison = compare_with_published(PUBLISHED, results, "confirmed")
    assert comparison.summary == "The order differs in 1 of 3 pairs: one and all."


@pytest.mark.parametrize("state", ["undecided", "refuted"])
def test_the_order_is_compared_only_if_the_claim_is_confirmed(state: State) -> None:
    claim = replace(CLAIM, judge=lambda results: Verdict(state, "planted"), published=(PUBLISHED,))
    report = ClaimReport(claim, "small", fake_results(scale_numbers(1, 3, 2)))
    [comparison] = report.comparisons
    assert comparison.summary == f"The claim is {state} here, so the orders are not compared."
    assert comparison.same_order is None
    assert "order is the same" not in comparison.summary


def test_only_the_same_metric_is_compared_with_a_published_one() -> None:
    claim = replace(CLAIM, published=(replace(PUBLISHED, metric="BLEU"),))
    claim = replace(claim, judge=lambda results: Verdict("confirmed", "planted"))
    assert not ClaimReport(claim, "small", fake_results(scale_numbers(1, 3, 2))).comparisons


def test_a_claim_that_needs_five_seeds_is_undecided_with_four() -> None:
    claim = replace(CLAIM, min_seeds=5, judge=lambda results: Verdict("confirmed", "planted"))
    four, five = (
        ClaimReport(claim, "small", fake_results(scale_numbers(1, 3, 2), seeds=count)).verdict
        for count in (4, 5)
    )
    assert (four.state, five.state) == ("undecided", "confirmed")
    assert four.reason == "this claim needs at least 5 seeds; planted"


def test_a_report_of_measured_times_names_the_machine() -> None:
    results = fake_results(scale_numbers(1, 3, 2))
    timed = Results([replace(each, machine="Processor X") for each in results.measurements])
    assert ClaimReport(CLAIM, "small", timed).devices == ["cpu"]
    assert ClaimReport(replace(CLAIM, is_timed=True), "small", timed).devices == ["Processor X"]


def test_a_table_with_more_columns_than_conditions_is_transposed() -> None:
    claim = replace(CLAIM, columns=(Column("x", "an x", ".0f"),))
    table = ClaimReport(claim, "small", fake_results(scale_numbers(1, 2, 3))).table
    assert table == [["", "an x"], ["1", "1 ± 0"], ["√d", "2 ± 0"], ["d", "3 ± 0"]]
    wide = replace(CLAIM, columns=tuple(Column("x", str(number), ".0f") for number in range(4)))
    transposed = ClaimReport(wide, "small", fake_results(scale_numbers(1, 2, 3))).table
    assert transposed[0] == ["", "1", "√d", "d"]
    assert len(transposed) == 5


def test_a_number_that_a_condition_does_not_measure_is_a_dash() -> None:
    claim = replace(CLAIM, columns=(Column("x", "an x"),))
    numbers = {**scale_numbers(1, 2, 3), "d": {"y": 1.0}}
    assert ClaimReport(claim, "small", fake_results(numbers)).table[-1] == ["d", "–"]


def test_html_escapes_the_text_of_a_claim() -> None:
    numbers = {
        condition: {
            f"{quantity} at {width}": 0.5
            for quantity in ("slope", "matched")
            for width in (4, 16, 64, 256, 1024)
        }
        for condition in CLAIM.conditions
    }
    claim = replace(CLAIM, sentence="a < b & c.", columns=(Column("slope at 4", "x"),))
    text = render_html(ClaimReport(claim, "small", fake_results(numbers)))
    assert "a &lt; b &amp; c." in text
    assert "a < b" not in text
