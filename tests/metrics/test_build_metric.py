"""Metrics by the names of recipes."""

from typing import get_args

import pytest

from seqloom.config.schema.names import METRICS, ScoreName
from seqloom.metrics.build import build_metric, higher_is_better


@pytest.mark.parametrize(
    "name", [name for name in get_args(ScoreName) if not METRICS[name].reads_sources]
)
@pytest.mark.parametrize("lowercase", [False, True])
def test_key_of_a_score_is_its_name_in_recipes(name: ScoreName, lowercase: bool) -> None:
    score = build_metric(name, lowercase)(["a b c d e"], [["a b c d e"]])
    assert score.key == name
    assert score.value == pytest.approx(100 if score.higher_is_better else 0)


@pytest.mark.parametrize(
    "name", [name for name in get_args(ScoreName) if not METRICS[name].reads_sources]
)
def test_references_are_lowercased_with_the_outputs(name: ScoreName) -> None:
    score = build_metric(name, lowercase=True)(["a b c d e"], [["A b C d E"]])
    assert score.value == pytest.approx(100 if score.higher_is_better else 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bleu", True),
        ("ter", False),
        ("loss", False),
        (None, True),
        ("custom_parts:exact_length", True),
        ("custom_parts:length_error", False),
    ],
)
def test_the_direction_of_a_score_is_known_from_its_name(name: str | None, expected: bool) -> None:
    assert higher_is_better(name) == expected
