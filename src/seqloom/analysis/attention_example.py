"""A worked example of self-attention with numbers small enough to check by hand.

    h₁ = (5, 1)   h₂ = (4, 3)   h₃ = (-2, 6)      q = Wq h,  k = Wk h,  v = Wv h

The example comes from a lecture on attention. The second state attends to all three states. The
lecture uses the dot product q · k as the score and hard attention: the context vector is the value
whose key has the highest score. An `AttentionExample` can have other numbers, another score,
another selection and another query.
"""

import math
from dataclasses import dataclass
from typing import Literal, assert_never

import torch
from torch import Tensor, nn

from seqloom.analysis.explanation import Explanation
from seqloom.analysis.matrices import Rows, matrix_problems, shape_text, to_tensor
from seqloom.core.errors import ConfigError
from seqloom.models.step_description import PositionLabels, StepDescription
from seqloom.nn.attention import (
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    DotScore,
    ExactScore,
    RbfScore,
    Selection,
    attention_weights,
)
from seqloom.nn.fast.linear import Linear
from seqloom.nn.formulas import indexed
from seqloom.nn.multihead import MultiHeadAttention, Projection

STATES = ((5.0, 1.0), (4.0, 3.0), (-2.0, 6.0))
TO_QUERY = ((1.0, 0.0), (2.0, 9.0))
TO_KEY = ((0.0, 1.0), (6.0, 0.0))
TO_VALUE = ((4.0, 3.0), (9.0, 1.0))
QUERY_STATE = 2
"""Number of the state that provides the query, counted from 1."""
LectureScore = Literal[
    "dot", "identity", "sqrt", "width", "bilinear", "nonlinear", "additive", "rbf"
]
"""Scores for the lecture example. d is the width of queries and keys, and h are the states.

dot:       q · k, as in the lecture
identity:  h · h, without projections
sqrt:      q · k / √d
width:     q · k / d
bilinear:  hᵀ W h with W = Wqᵀ Wk; the scores are the same as with dot
nonlinear: σ(Wq h) · σ(Wk h)
additive:  1 · tanh(Wq h + Wk h)
rbf:       -‖q - k‖²
"""
ExampleScore = Literal["dot", "bilinear", "additive", "rbf"]
ExampleSelection = Literal["softmax", "argmax", "nearest", "exact"]
Scale = Literal["one", "sqrt", "width"]


@dataclass(frozen=True)
class AttentionExample:
    """The numbers and the choices of a worked example of self-attention.

    By default, the numbers are those of an example in a lecture on attention.

    Here K is the width of queries and keys, and V is the width of values.

    states:     (S, D) the states h, one row each
    to_query:   (K, D) the matrix Wq
    to_key:     (K, D) the matrix Wk
    to_value:   (V, D) the matrix Wv
    query:      number of the state that attends, counted from 1. Default: 2
    score:      "dot" (q · k), "bilinear" (hᵀ W h, W = Wqᵀ Wk), "additive" (1 · tanh(Wq h + Wk h))
                or "rbf" (-γ‖q - k‖²). Default: "dot"
    scale:      divisor of the dot product: "one", "sqrt" (√K) or "width" (K). Default: "one"
    gamma:      γ of the score "rbf". Default: 1
    selection:  how the context vector is computed from the values. Default: "argmax"
                "softmax": the weighted mean of the values, with the softmax of the scores
                "argmax":  the value whose key has the highest score
                "nearest": the value whose key is nearest to the query
                "exact":   the value whose key equals the query; zero if there is no such key
    projection: how queries and keys are computed from the states. The scores "bilinear" and
                "additive" ignore it. Default: "linear"
                "linear":  Wq h and Wk h
                "sigmoid": σ(Wq h) and σ(Wk h)
                "tanh":    tanh(Wq h) and tanh(Wk h)
                "none":    h
    """

    states: Rows = STATES
    to_query: Rows = TO_QUERY
    to_key: Rows = TO_KEY
    to_value: Rows = TO_VALUE
    query: int = QUERY_STATE
    score: ExampleScore = "dot"
    scale: Scale = "one"
    gamma: float = 1.0
    selection: ExampleSelection = "argmax"
    projection: Projection = "linear"

    @classmethod
    def of_lecture(cls, score: LectureScore, selection: ExampleSelection) -> "AttentionExample":
        """Return the example with the numbers of the lecture and the given score and selection."""
        match score:
            case "dot" | "bilinear" | "additive" | "rbf":
                return cls(score=score, selection=selection)
            case "sqrt" | "width":
                return cls(scale=score, selection=selection)
            case "identity":
                return cls(projection="none", selection=selection)
            case "nonlinear":
                return cls(projection="sigmoid", selection=selection)
            case _:
                assert_never(score)

    @property
    def measures_distance(self) -> bool:
        """True if the selection ignores `score` and uses the distance between query and key."""
        return self.selection in ("nearest", "exact")

    def problems(self) -> list[str]:
        """Return one message for each problem. The list is empty if the example is valid."""
        matrices = {"h": self.states, "Wq": self.to_query, "Wk": self.to_key, "Wv": self.to_value}
        problems = [text for name, rows in matrices.items() for text in matrix_problems(name, rows)]
        if not problems:
            problems += self._shape_problems()
        count = len(self.states)
        if not 1 <= self.query <= count:
            problems.append(f"query {self.query}: there are {count} states; choose 1 to {count}")
        if not 0 < self.gamma < math.inf:
            problems.append(f"γ is {self.gamma:g}, but must be a finite number larger than 0")
        if self.measures_distance and self.score in ("bilinear", "additive"):
            problems.append(
                f"selection '{self.selection}' measures the distance between query and key, but "
                f"with score '{self.score}' they are in different spaces; use score 'dot' or 'rbf'"
            )
        return problems

    def _shape_problems(self) -> list[str]:
        width = len(self.states[0])
        problems = [
            f"{name} is {shape_text(rows)}, but the states h have width {width}; give it {width} "
            "columns"
            for name, rows in (("Wq", self.to_query), ("Wk", self.to_key), ("Wv", self.to_value))
            if len(rows[0]) != width
        ]
        if len(self.to_query) != len(self.to_key):
            problems.append(
                f"Wq is {shape_text(self.to_query)} and Wk is {shape_text(self.to_key)}; queries "
                "and keys must have the same width, so give both the same number of rows"
            )
        return problems


def build_example_attention(example: AttentionExample) -> MultiHeadAttention:
    """Build a self-attention module with the matrices of the example. All biases are zero."""
    # The scores "bilinear" and "additive" contain Wq and Wk themselves.
    has_own_matrices = example.score in ("bilinear", "additive")
    projection: Projection = "none" if has_own_matrices else example.projection
    attention = MultiHeadAttention(
        len(example.states[0]),
        width=len(example.to_query),
        score=_score(example),
        projection=projection,
        output_projection=False,
        selection=_selection(example.selection),
    )
    if projection != "none":
        attention.to_query = _linear(example.to_query)
        attention.to_key = _linear(example.to_key)
    attention.to_value = _linear(example.to_value)
    return attention.double()


def _score(example: AttentionExample) -> AttentionScore:
    """Build the score function. Its parameters, if any, are set from Wq and Wk of the example."""
    width, inner = len(example.states[0]), len(example.to_query)
    if example.selection == "exact":
        return ExactScore()
    if example.selection == "nearest":
        return RbfScore(example.gamma)
    match example.score:
        case "dot":
            return DotScore(example.scale, width if example.projection == "none" else inner)
        case "bilinear":
            bilinear = BilinearScore(width, width)
            bilinear.weight.data = _bilinear_matrix(example).unsqueeze(0)
            return bilinear
        case "additive":
            additive = AdditiveScore(width, width, inner)
            additive.project_query.data = to_tensor(example.to_query).T.unsqueeze(0)
            additive.project_key.data = to_tensor(example.to_key).T.unsqueeze(0)
            nn.init.ones_(additive.to_score)
            return additive
        case "rbf":
            return RbfScore(example.gamma)
        case _:
            assert_never(example.score)


def _bilinear_matrix(example: AttentionExample) -> Tensor:
    """Return the matrix W = Wqᵀ Wk of the bilinear score: (D, D)"""
    return to_tensor(example.to_query).T @ to_tensor(example.to_key)


def _selection(selection: ExampleSelection) -> Selection:
    # The score is minus the squared distance, so the nearest key has the highest score.
    return "argmax" if selection == "nearest" else selection


def _linear(rows: Rows) -> Linear:
    """Build a linear layer with this matrix and a bias of zero."""
    layer = Linear(len(rows[0]), len(rows)).double()
    layer.weight.data = to_tensor(rows)
    nn.init.zeros_(layer.bias)
    return layer


def explain_lecture(score: LectureScore = "dot", selection: Selection = "argmax") -> Explanation:
    """Explain a worked example of self-attention. The numbers are those of a lecture.

    The second of three states attends to all three states.
    """
    return explain_example(AttentionExample.of_lecture(score, selection))


@torch.inference_mode()
def explain_example(example: AttentionExample) -> Explanation:
    """Explain the attention of one state of the example to all states.

    If the score is the dot product with scale "one" and linear projections, the explanation also
    shows the softmax of q · k, q · k / √d and q · k / d, where d is the width of the query.

    Raises ConfigError if the example cannot be computed. The message lists all problems.
    """
    if problems := example.problems():
        raise ConfigError("\n".join(["the example cannot be computed:", *problems]))
    number, count = example.query, len(example.states)
    labels = tuple(indexed("h", index) for index in range(1, count + 1))
    states = to_tensor(example.states).unsqueeze(0)  # (1, S, D)
    # The token ids are not used. Their number is the number of the step.
    tokens = torch.zeros(1, number, dtype=torch.long)
    step = StepDescription(tokens, PositionLabels(labels, ()), layer=0, head=0)
    attention = build_example_attention(example)
    attended = attention.trace(states[:, number - 1 : number], states)
    step.begin_section("states and matrices")
    step.add("states", "h", states[0], labels)
    _add_matrices(step, example, attention.score)
    query_state = indexed("h", number)
    step.begin_section(f"attention of {query_state}")
    step.add_attention(attention, attended, query_state, "h", labels)
    is_plain_dot = isinstance(attention.score, DotScore) and example.scale == "one"
    if is_plain_dot and example.projection == "linear":
        step.begin_section("softmax of the same scores")
        _add_softmax(step, attended.scores[0, 0, 0], labels, attention.query_head_width)
    return Explanation(
        source=labels,
        output=(),
        step=number,
        previous=None,
        answer=None,
        best=(),
        layer=None,
        head=None,
        parts=tuple(step.parts),
    )


def _add_matrices(step: StepDescription, example: AttentionExample, score: AttentionScore) -> None:
    """Add Wq, Wk and Wv, and the parameters of the score function, if it has any."""
    matrices = (example.to_query, example.to_key, example.to_value)
    for name, letter, rows in zip(("queries", "keys", "values"), "qkv", matrices, strict=True):
        step.add(f"to {name}", f"W{letter}", to_tensor(rows), _row_names(len(rows)))
    if isinstance(score, BilinearScore):
        matrix = score.weight[0]
        step.add("score matrix", "W = Wqᵀ Wk", matrix, _row_names(len(matrix)))
    elif isinstance(score, AdditiveScore):
        step.add("score vector", "v", score.to_score[0, :, 0], note="the bias b is zero")


def _row_names(count: int) -> tuple[str, ...]:
    return tuple(f"row {number}" for number in range(1, count + 1))


def _add_softmax(
    step: StepDescription, products: Tensor, labels: tuple[str, ...], width: int
) -> None:
    """Add the softmax of products, products / √d and products / d.

    products: (S,) dot product of the query with each key
    width:    d, the width of the query
    """
    for score in (DotScore("one", width), DotScore("sqrt", width), DotScore("width", width)):
        scaled = products / score.divisor
        step.add("scores", f"e = {score.formula}", scaled, labels)
        step.add("weights", "α = softmax(e)", attention_weights(scaled), labels)
