"""Tables, published figures and pages, from numbers that nobody has measured."""

from dataclasses import replace

from made_up_numbers import results

from seqloom.lab.claim import Column, Figure, Published
from seqloom.lab.claims.scale import CLAIM
from seqloom.lab.page import page
from seqloom.lab.report import Report, compare

PUBLISHED = Published(
    "somebody 2015",
    "BLEU",
    (Figure("one", 20.0, "1", "x"), Figure("root", 30.0, "√d", "x"), Figure("all", 25.0, "d", "x")),
)


def made(one: float, root: float, width: float) -> dict[str, dict[str, float]]:
    return {"1": {"x": one}, "√d": {"x": root}, "d": {"x": width}}


def test_figures_in_the_published_order_are_said_to_be_so_whatever_their_size() -> None:
    comparison = compare(PUBLISHED, results(made(1, 3, 2)))
    assert comparison.words == "The order is the same."
    assert [round(one.ours) for one in comparison.figures] == [1, 3, 2]


def test_every_pair_that_stands_the_other_way_round_is_named() -> None:
    comparison = compare(PUBLISHED, results(made(2, 3, 1)))
    assert comparison.words == "The order differs in 1 of 3 pairs: one and all."


def test_a_table_is_rather_long_than_wide() -> None:
    claim = replace(CLAIM, columns=(Column("x", "an x", ".0f"),))
    table = Report(claim, "small", results(made(1, 2, 3))).table
    assert table == [["", "an x"], ["1", "1 ± 0"], ["√d", "2 ± 0"], ["d", "3 ± 0"]]
    many = replace(CLAIM, columns=tuple(Column("x", str(place), ".0f") for place in range(4)))
    turned = Report(many, "small", results(made(1, 2, 3))).table
    assert turned[0] == ["", "1", "√d", "d"]
    assert len(turned) == 5


def test_what_a_condition_was_not_measured_for_is_a_dash() -> None:
    claim = replace(CLAIM, columns=(Column("x", "an x"),))
    numbers = {**made(1, 2, 3), "d": {"y": 1.0}}
    assert Report(claim, "small", results(numbers)).table[-1] == ["d", "–"]


def test_a_page_shows_the_claim_as_text_and_not_as_markup() -> None:
    numbers = {
        one: {
            f"{what} at {width}": 0.5
            for what in ("slope", "matched")
            for width in (4, 16, 64, 256, 1024)
        }
        for one in CLAIM.conditions
    }
    claim = replace(CLAIM, sentence="a < b & c.", columns=(Column("slope at 4", "x"),))
    text = page(Report(claim, "small", results(numbers)))
    assert "a &lt; b &amp; c." in text
    assert "a < b" not in text
