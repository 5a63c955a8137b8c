"""A worked example of self-attention with numbers small enough to check by hand.

    h₁ = (5, 1)   h₂ = (4, 3)   h₃ = (-2, 6)      q = Wq h,  k = Wk h,  v = Wv h

The example comes from a lecture on attention. The second state attends to all three states. The
lecture uses the dot product q · k as the score and hard attention: the context vector is the value
whose key has the highest score. The parameters `score` and `selection` choose other methods.
"""

from typing import Literal, assert_never

import torch
from torch import Tensor, nn

from seqloom.analysis.explain import formulas
from seqloom.analysis.explain.explanation import Explanation, PositionLabels
from seqloom.analysis.explain.step_trace import AttentionSymbols, StepTrace, trace_attention
from seqloom.models.interface import Memory
from seqloom.nn.attention import (
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    DotScore,
    RbfScore,
    Selection,
    attention_weights,
)
from seqloom.nn.multihead import MultiHeadAttention, Projection

STATES = ((5.0, 1.0), (4.0, 3.0), (-2.0, 6.0))
TO_QUERY = ((1.0, 0.0), (2.0, 9.0))
TO_KEY = ((0.0, 1.0), (6.0, 0.0))
TO_VALUE = ((4.0, 3.0), (9.0, 1.0))
QUERY_STATE = 2
"""Index of the state that provides the query, counted from 1."""
WIDTH = 2
LectureScore = Literal[
    "dot", "identity", "sqrt", "width", "bilinear", "nonlinear", "additive", "rbf"
]
"""dot:       q · k, as in the lecture
identity:  h · h, without projections
sqrt:      q · k / √d
width:     q · k / d
bilinear:  hᵀ W h with W = Wqᵀ Wk; the scores are the same as with dot
nonlinear: σ(Wq h) · σ(Wk h)
additive:  1 · tanh(Wq h + Wk h)
rbf:       -‖q - k‖²
"""


def lecture_attention(
    score: LectureScore = "dot", selection: Selection = "argmax"
) -> MultiHeadAttention:
    """Build a self-attention module with the matrices of the example and without biases."""
    kinds: dict[LectureScore, Projection] = {
        "identity": "none",
        "bilinear": "none",
        "additive": "none",
        "nonlinear": "sigmoid",
    }
    attention = MultiHeadAttention(
        WIDTH,
        score=_score(score),
        projection=kinds.get(score, "linear"),
        output_projection=False,
        selection=selection,
    ).double()
    projections = (attention.to_query, attention.to_key, attention.to_value)
    for projection, weight in zip(projections, (TO_QUERY, TO_KEY, TO_VALUE), strict=True):
        if isinstance(projection, nn.Linear):
            projection.weight.data = _matrix(weight)
            nn.init.zeros_(projection.bias)
    return attention


def _score(name: LectureScore) -> AttentionScore:
    """Build the score function. Its parameters, if any, are set from Wq and Wk of the example."""
    match name:
        case "dot" | "identity" | "nonlinear":
            return DotScore("one", WIDTH)
        case "sqrt" | "width":
            return DotScore(name, WIDTH)
        case "bilinear":
            bilinear = BilinearScore(WIDTH, WIDTH)
            bilinear.weight.data = (_matrix(TO_QUERY).T @ _matrix(TO_KEY)).unsqueeze(0)
            return bilinear
        case "additive":
            additive = AdditiveScore(WIDTH, WIDTH, WIDTH)
            additive.project_query.data = _matrix(TO_QUERY).T.unsqueeze(0)
            additive.project_key.data = _matrix(TO_KEY).T.unsqueeze(0)
            nn.init.ones_(additive.to_score)
            return additive
        case "rbf":
            return RbfScore(1.0)
        case _:
            assert_never(name)


def _matrix(rows: tuple[tuple[float, ...], ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


@torch.inference_mode()
def explain_lecture(score: LectureScore = "dot", selection: Selection = "argmax") -> Explanation:
    """Explain the attention of the second state to all three states.

    With the score "dot", the explanation also contains softmax(q · k / s) for s = 1, √d and d.
    """
    labels = tuple(formulas.indexed("h", number) for number in range(1, len(STATES) + 1))
    states = torch.tensor([STATES], dtype=torch.float64)  # (1, 3, 2)
    mask = torch.ones(1, len(STATES), dtype=torch.bool)
    memory = Memory(states, mask, states[:, :0])
    tokens = torch.zeros(
        1, QUERY_STATE, dtype=torch.long
    )  # The token ids are not used. Their number makes this step 2.
    trace = StepTrace(memory, tokens, PositionLabels(labels, ()), layer=0, head=0)
    attention = lecture_attention(score, selection)
    query_state = formulas.indexed("h", QUERY_STATE)
    attended = attention.trace(states[:, QUERY_STATE - 1 : QUERY_STATE], states, trace.source_mask)
    trace.begin_section("states and matrices")
    trace.add("states", "h", states[0], labels)
    rows = tuple(f"row {number + 1}" for number in range(WIDTH))
    matrices = (TO_QUERY, TO_KEY, TO_VALUE)
    for name, letter, weight in zip(("queries", "keys", "values"), "qkv", matrices, strict=True):
        trace.add(f"to {name}", f"W{letter}", _matrix(weight), rows)
    trace.begin_section(f"attention of {query_state}")
    trace_attention(attention, attended, AttentionSymbols(query_state, "h", labels), trace)
    if score == "dot":
        trace.begin_section("softmax of the same scores")
        _trace_softmax(trace, attended.scores[0, 0, 0], labels)
    return Explanation(
        source=labels,
        output=(),
        step=QUERY_STATE,
        previous=None,
        answer=None,
        best=(),
        layer=None,
        head=None,
        parts=tuple(trace.parts),
    )


def _trace_softmax(trace: StepTrace, products: Tensor, labels: tuple[str, ...]) -> None:
    """Trace softmax(products / s) three times, with s = 1, √d and d."""
    mask = torch.ones(len(products), dtype=torch.bool)
    for score in (DotScore("one", WIDTH), DotScore("sqrt", WIDTH), DotScore("width", WIDTH)):
        scaled = products / score.divisor
        formula = formulas.score(score, WIDTH)
        trace.add("scores", f"e = {formula}", scaled, labels)
        trace.add("weights", "α = softmax(e)", attention_weights(scaled, mask, "softmax"), labels)
