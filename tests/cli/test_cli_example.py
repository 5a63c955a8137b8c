"""`seqloom example attention`: self-attention with chosen scores, selections and numbers."""

import json
from typing import Any

import pytest
import torch

from seqloom.analysis.attention_example import AttentionExample, explain_example
from seqloom.core.errors import ConfigError
from support.cli_runner import run_cli


def example(*options: object) -> dict[str, dict[str, Any]]:
    """The values of the attention section, by name."""
    result = run_cli("example", "attention", *options, "--json")
    assert result.exit_code == 0, result.stderr
    parts = json.loads(result.stdout)["parts"]
    section = next(part["chapter"] for part in parts if part["chapter"].startswith("attention"))
    return {part["name"]: part for part in parts if part["chapter"] == section}


def test_the_numbers_of_the_lecture_are_printed_with_formula_and_shape() -> None:
    values = example("--select", "argmax")
    assert values["scores"]["values"] == [1054, 852, -396]
    assert values["context"]["values"] == [23, 46]
    printed = run_cli("example", "attention", "--select", "argmax").stdout
    assert "e = q · k" in printed
    assert "(3 × 2)" in printed
    assert {"1054", "852", "-396", "23", "46"} <= set(printed.split())


@pytest.mark.parametrize(
    ("options", "scores", "formula"),
    [
        (["--scale", "sqrt"], [1054 / 2**0.5, 852 / 2**0.5, -396 / 2**0.5], "e = q · k / √2"),
        (["--scale", "width"], [527, 426, -198], "e = q · k / 2"),
        (["--score", "bilinear"], [1054, 852, -396], "e = qᵀ W k"),
        (["--score", "additive"], [2, 2, 2], "e = v · tanh(Wq q + Wk k + b)"),
        (["--score", "rbf", "--gamma", "0.5"], [-17, -61, -1106.5], "e = -0.5 ‖q - k‖²"),
    ],
)
def test_every_score_equals_a_calculation_by_hand(
    options: list[str], scores: list[float], formula: str
) -> None:
    values = example("--select", "softmax", *options)
    assert values["scores"]["values"] == pytest.approx(scores, abs=2e-3)
    assert values["scores"]["formula"] == formula
    expected = torch.tensor(values["scores"]["values"], dtype=torch.float64).softmax(-1)
    assert values["weights"]["values"] == pytest.approx(expected.tolist())


def test_own_states_are_compared_without_matrices() -> None:
    values = example("--h", "1,0 0,2 3,3 -1,-1", "--query", 3, "--select", "argmax")
    assert values["query"]["values"] == [3, 3]
    assert values["scores"]["values"] == [3, 6, 18, -6]
    assert values["context"]["values"] == [3, 3]
    assert values["scores"]["labels"] == ["h₁", "h₂", "h₃", "h₄"]


def test_own_matrices_may_have_other_widths_than_the_states() -> None:
    values = example("--h", "1,2 3,4", "--wq", "1,0;0,1;1,1", "--wk=1,0;0,0;0,-1", "--wv", "1,1")
    assert values["query"]["values"] == [3, 4, 7]
    assert values["keys"]["values"] == [[1, 0, -2], [3, 0, -4]]
    assert values["scores"]["values"] == [3 - 14, 9 - 28]
    assert values["context"]["values"] == [3]


def test_nearest_selects_by_distance_and_argmax_by_score() -> None:
    """The longest state has the largest dot product with every other state."""
    states = ("--h", "1,1 2,2 9,9", "--query", 1)
    assert example(*states, "--select", "argmax")["context"]["values"] == [9, 9]
    assert example(*states, "--select", "nearest")["context"]["values"] == [1, 1]


def test_exact_selection_needs_an_equal_key() -> None:
    assert example("--select", "exact")["context"]["values"] == [0, 0]
    found = example("--h", "1,2 3,4", "--select", "exact", "--wv", "2,0;0,2")
    assert found["weights"]["values"] == [0, 1]
    assert found["context"]["values"] == [6, 8]


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (["--score", "cosine"], ["'cosine' is not one of"]),
        (["--scale", "2"], ["'2' is not one of"]),
        (["--select", "first"], ["'first' is not one of"]),
        (["--gamma", "x"], ["unable to parse string as a number"]),
        (["--query", "4"], ["query 4: there are 3 states; choose 1 to 3"]),
        (["--query", "0"], ["query 0: there are 3 states"]),
        (["--score", "rbf", "--gamma", "0"], ["γ is 0, but must be a finite number larger than 0"]),
        (["--score", "rbf", "--gamma", "nan"], ["γ is nan"]),
        (["--gamma", "2"], ["It needs --score rbf"]),
        (["--scale", "sqrt", "--score", "rbf"], ["It needs --score dot"]),
        (["--scale", "sqrt", "--select", "nearest"], ["It needs --score dot"]),
        (["--score", "additive", "--select", "exact"], ["use score 'dot' or 'rbf'"]),
        (["--h", ""], ["h: there is a row without numbers"]),
        (["--wq", "1,inf;2,3"], ["Wq: inf is not finite"]),
        (
            ["--h", "1,x 2;3,4", "--wq", "1,2,3", "--wk", "a;b", "--wv", "1 2,3", "--query", "7"],
            [
                "--h: 'x' is not a number",
                "--wk: 'a' is not a number",
                "--wk: 'b' is not a number",
                "h: the rows have different lengths: 2, 1, 2",
                "Wv: the rows have different lengths: 1, 2",
                "query 7: there are 3 states",
            ],
        ),
        (
            ["--h", "1,2 3,4", "--wq", "1,2,3", "--wk", "1,2;3,4"],
            ["Wq is 1 × 3, but the states h have width 2", "give both the same number of rows"],
        ),
    ],
)
def test_all_problems_with_the_options_are_reported_at_once(
    options: list[str], messages: list[str]
) -> None:
    result = run_cli("example", "attention", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    for message in messages:
        assert message in result.error


def test_python_reports_all_problems_of_an_example() -> None:
    with pytest.raises(ConfigError, match=r"(?s)Wq is 1 × 1.*Wv is 1 × 1.*query 0"):
        explain_example(AttentionExample(to_query=[[1]], to_value=[[1]], query=0))
