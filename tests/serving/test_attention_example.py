"""POST /api/explain/example: self-attention on the matrices of a request."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.analysis.attention_example import (
    ExampleSelection,
    LectureScore,
    explain_lecture,
)
from support.in_process_server import respond

PATH = "/api/explain/example"
SCORES: tuple[LectureScore, ...] = get_args(LectureScore)


def explain(**body: Any) -> dict[str, Any]:
    """The values of the attention by name."""
    response = respond("POST", PATH, json=body)
    assert response.status_code == 200, response.text
    parts = response.json()["explanation"]["parts"]
    return {part["name"]: part["values"] for part in reversed(parts)}


@pytest.mark.parametrize("score", SCORES)
def test_default_numbers_are_those_of_the_lecture(score: LectureScore) -> None:
    response = respond("POST", PATH, json={"score": score, "selection": "argmax"})
    assert response.json()["explanation"] == explain_lecture(score, "argmax").to_json()


def matrix(rows: int, columns: int) -> st.SearchStrategy[list[list[float]]]:
    row = st.lists(st.integers(-9, 9).map(float), min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    states, width, inner, outer = (draw(st.integers(1, 4)) for _ in range(4))
    selection = draw(st.sampled_from(get_args(ExampleSelection)))
    measures_distance = selection in ("nearest", "exact")
    return {
        "states": draw(matrix(states, width)),
        "to_query": draw(matrix(inner, width)),
        "to_key": draw(matrix(inner, width)),
        "to_value": draw(matrix(outer, width)),
        "query": draw(st.integers(1, states)),
        "selection": selection,
        "score": draw(st.sampled_from([score for score in SCORES
                      if not (measures_distance and score in ("bilinear", "additive"))])),
    }  # fmt: skip


@given(requests())
@settings(deadline=None)
def test_context_is_the_weighted_sum_of_the_projected_states(request: dict[str, Any]) -> None:
    values = explain(**request)
    weights = np.array(values["weights"])
    projected = np.array(request["states"]) @ np.array(request["to_value"]).T
    np.testing.assert_allclose(values["context"], weights @ projected, atol=1e-9)
    assert weights.sum() == pytest.approx(1) or request["selection"] == "exact"


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        ({"states": [[1, "x"]]}, ["states, row 1, column 2: must be a number"]),
        ({"states": [[]]}, ["states, row 1: must have at least 1 item"]),
        ({"states": [[1e9]]}, ["states, row 1, column 1: must be at most"]),
        ({"states": [[1.0]] * 17}, ["states: must have at most 16 item"]),
        ({"score": "cosine"}, ["score: must be 'dot'"]),
        ({"query": 4}, ["query 4: there are 3 states; choose 1 to 3"]),
        ({"states": [[1], [2]]}, ["Wq is 2 × 2", "Wk is 2 × 2", "Wv is 2 × 2", "width 1"]),
        ({"score": "additive", "selection": "nearest"}, ["use score 'dot' or 'rbf'"]),
    ],
)
def test_all_problems_of_the_matrices_are_reported(
    body: dict[str, Any], messages: list[str]
) -> None:
    response = respond("POST", PATH, json=body)
    assert response.status_code == 422
    for message in messages:
        assert message in response.json()["error"]
