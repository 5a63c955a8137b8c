"""Reports: tables, comparisons with published figures, and HTML pages."""

from dataclasses import replace

from fake_results import fake_results

from seqloom.lab.claim import Column, PublishedFigure, PublishedResult
from seqloom.lab.claims.scale import CLAIM
from seqloom.lab.reporting.report import ClaimReport, compare_with_published
from seqloom.lab.reporting.report_files import render_html

PUBLISHED = PublishedResult(
    "Author 2015",
    "BLEU",
    (
        PublishedFigure("one", 20.0, "1", "x"),
        PublishedFigure("root", 30.0, "√d", "x"),
        PublishedFigure("all", 25.0, "d", "x"),
    ),
)


def scale_numbers(one: float, root: float, width: float) -> dict[str, dict[str, float]]:
    return {"1": {"x": one}, "√d": {"x": root}, "d": {"x": width}}


def test_figures_in_the_published_order_are_reported_as_the_same_order() -> None:
    comparison = compare_with_published(PUBLISHED, fake_results(scale_numbers(1, 3, 2)))
    assert comparison.summary == "The order is the same."
    assert [round(figure.ours) for figure in comparison.figures] == [1, 3, 2]


def test_pairs_in_the_opposite_order_are_named() -> None:
    comparison = compare_with_published(PUBLISHED, fake_results(scale_numbers(2, 3, 1)))
    assert comparison.summary == "The order differs in 1 of 3 pairs: one and all."


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
