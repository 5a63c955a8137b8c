"""Three states and three matrices, small enough to follow by hand: how self-attention works.

    h₁ = (5, 1)   h₂ = (4, 3)   h₃ = (-2, 6)      q = Wq h,  k = Wk h,  v = Wv h

The second state asks; all three answer. The lecture compares by q · k and takes the best; every
other score can be put in its place.
"""

from dataclasses import replace
from typing import Literal, assert_never

import torch
from torch import Tensor, nn

from seqloom.inside import formulas
from seqloom.inside.explanation import Explanation, Story, Words
from seqloom.inside.scene import Asking, Scene, tell_look
from seqloom.models.interface import Memory
from seqloom.nn.attention import (
    AdditiveScore,
    BilinearScore,
    DotScore,
    RbfScore,
    Score,
    Selection,
    weigh,
)
from seqloom.nn.multihead import AttentionPlan, MultiHeadAttention

STATES = ((5.0, 1.0), (4.0, 3.0), (-2.0, 6.0))
TO_QUERY = ((1.0, 0.0), (2.0, 9.0))
TO_KEY = ((0.0, 1.0), (6.0, 0.0))
TO_VALUE = ((4.0, 3.0), (9.0, 1.0))
ASKING = 2
"""The state that asks, from 1."""
WIDTH = 2
LectureScore = Literal[
    "dot", "identity", "sqrt", "width", "bilinear", "nonlinear", "additive", "rbf"
]
"""dot: the lecture's own; identity: of the states as they are; sqrt and width: divided by √d and d;
bilinear: hᵀ W h with W = Wqᵀ Wk, the same as dot; nonlinear: of σ(Wq h) and σ(Wk h); additive: a
network whose hidden layer is tanh(Wq h + Wk h), its last weights 1; rbf: by distance."""


def lecture_attention(
    score: LectureScore = "dot", selection: Selection = "argmax"
) -> MultiHeadAttention:
    """Self-attention with the matrices of the example, and no biases."""
    plan = AttentionPlan(
        query_width=WIDTH,
        key_width=WIDTH,
        width=WIDTH,
        heads=1,
        projection="linear",
        learned_values=True,
        merged_width=None,
    )
    match score:
        case "identity" | "bilinear" | "additive":
            plan = replace(plan, projection="none")
        case "nonlinear":
            plan = replace(plan, projection="sigmoid")
        case "dot" | "sqrt" | "width" | "rbf":
            pass
        case _:
            assert_never(score)
    attention = MultiHeadAttention(plan, _score(score), selection).double()
    parts = (attention.to_query, attention.to_key, attention.to_value)
    for part, weight in zip(parts, (TO_QUERY, TO_KEY, TO_VALUE), strict=True):
        if isinstance(part, nn.Linear):
            part.weight.data = _matrix(weight)
            nn.init.zeros_(part.bias)
    return attention


def _score(name: LectureScore) -> Score:
    """Where a score has matrices of its own, they are those of the example."""
    match name:
        case "dot" | "identity" | "nonlinear":
            return DotScore("one", WIDTH)
        case "sqrt" | "width":
            return DotScore(name, WIDTH)
        case "bilinear":
            bilinear = BilinearScore(1, WIDTH, WIDTH)
            bilinear.weight.data = (_matrix(TO_QUERY).T @ _matrix(TO_KEY)).unsqueeze(0)
            return bilinear
        case "additive":
            additive = AdditiveScore(1, WIDTH, WIDTH, WIDTH)
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
    """What the second state reads; of the lecture's own products also what softer choices make."""
    labels = tuple(formulas.at("h", number) for number in range(1, len(STATES) + 1))
    states = torch.tensor([STATES], dtype=torch.float64)  # (1, 3, 2)
    everything = torch.ones(1, len(STATES), dtype=torch.bool)
    memory = Memory(states, everything, states[:, :0])
    tokens = torch.zeros(1, ASKING, dtype=torch.long)  # only counted: this is step 2
    scene = Scene(memory, tokens, Words(labels, ()), 0, 0, Story())
    attention = lecture_attention(score, selection)
    asking = formulas.at("h", ASKING)
    look = attention.lay_open(states[:, ASKING - 1 : ASKING], states, scene.visible)
    scene.story.begin("what there is")
    scene.story.tell("states", "h", states[0], labels)
    rows = tuple(f"row {number + 1}" for number in range(WIDTH))
    maps = (TO_QUERY, TO_KEY, TO_VALUE)
    for name, letter, weight in zip(("queries", "keys", "values"), "qkv", maps, strict=True):
        scene.story.tell(f"to {name}", f"W{letter}", _matrix(weight), rows)
    scene.story.begin(f"what {asking} reads")
    tell_look(attention, look, Asking(asking, "h", labels), scene)
    if score == "dot":
        scene.story.begin("the same scores, softly")
        _tell_softly(scene, look.scores[0, 0, 0], labels)
    return Explanation(labels, (), ASKING, None, None, (), None, None, tuple(scene.story.parts))


def _tell_softly(scene: Scene, products: Tensor, labels: tuple[str, ...]) -> None:
    """The softmax of the products, divided by 1, √d and d."""
    visible = torch.ones(len(products), dtype=torch.bool)
    for score in (DotScore("one", WIDTH), DotScore("sqrt", WIDTH), DotScore("width", WIDTH)):
        scaled = products / score.divisor
        formula = formulas.score(score, WIDTH)
        scene.story.tell("scores", f"e = {formula}", scaled, labels)
        scene.story.tell("weights", "α = softmax(e)", weigh(scaled, visible, "softmax"), labels)
