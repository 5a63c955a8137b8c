"""Synthetic pairs: which side is which, and what is left out."""

import pytest

from seqloom.inference.prediction import Prediction
from seqloom.jobs.synthetic_pairs import BLANK, COPY, EMPTY, TRUNCATED, Side, SyntheticPairs


@pytest.mark.parametrize(
    ("side", "tag", "pair"),
    [
        ("target", "", ("synthetic", "real text")),
        ("target", "<BT>", ("<BT> synthetic", "real text")),
        ("source", "", ("real text", "synthetic")),
    ],
)
def test_text_is_on_the_chosen_side(side: Side, tag: str, pair: tuple[str, str]) -> None:
    assert SyntheticPairs(side, tag).make("real text", Prediction("synthetic", 0.0)) == pair


@pytest.mark.parametrize("side", ["source", "target"])
def test_white_space_does_not_break_rows(side: Side) -> None:
    pair = SyntheticPairs(side).make(" a\tb \n", Prediction("c\td\r", 0.0))
    assert pair is not None
    assert sorted(pair) == ["a b", "c d"]


@pytest.mark.parametrize(
    ("text", "prediction", "reason"),
    [
        (" ", Prediction("", 0.0), BLANK),
        ("text", Prediction(" ", 0.0), EMPTY),
        ("text", Prediction("output", 0.0, finished=False), TRUNCATED),
        ("Text", Prediction("text", 0.0), COPY),
        (
            "text",
            Prediction("x" * 13, 0.0),
            "one side has more than 3 times as many characters as the other",
        ),
    ],
)
def test_useless_pairs_are_left_out_and_counted(
    text: str, prediction: Prediction, reason: str
) -> None:
    pairs = SyntheticPairs(max_ratio=3)
    assert pairs.make(text, prediction) is None
    assert pairs.make("abc", Prediction("cba", 0.0)) is not None
    assert (pairs.pairs, dict(pairs.left_out)) == (1, {reason: 1})
