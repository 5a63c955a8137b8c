"""Three states and three matrices, small enough to follow by hand: how self-attention works.

    h₁ = (5, 1)   h₂ = (4, 3)   h₃ = (-2, 6)      q = Wq h,  k = Wk h,  v = Wv h

The second state asks; all three answer.
"""

import torch
from torch import Tensor, nn

from seqloom.inside import formulas
from seqloom.inside.explanation import Explanation, Story, Words
from seqloom.inside.scene import Asking, Scene, tell_look
from seqloom.models.interface import Memory
from seqloom.nn.attention import DotScore, weigh
from seqloom.nn.multihead import AttentionPlan, MultiHeadAttention

STATES = ((5.0, 1.0), (4.0, 3.0), (-2.0, 6.0))
TO_QUERY = ((1.0, 0.0), (2.0, 9.0))
TO_KEY = ((0.0, 1.0), (6.0, 0.0))
TO_VALUE = ((4.0, 3.0), (9.0, 1.0))
ASKING = 2
"""The state that asks, from 1."""
WIDTH = 2


def lecture_attention() -> MultiHeadAttention:
    """Self-attention with the matrices of the example: no biases, no scale, the best takes all."""
    plan = AttentionPlan(
        query_width=WIDTH,
        key_width=WIDTH,
        width=WIDTH,
        heads=1,
        projection="linear",
        learned_values=True,
        merged_width=None,
    )
    attention = MultiHeadAttention(plan, DotScore("one", WIDTH), "argmax").double()
    parts = (attention.to_query, attention.to_key, attention.to_value)
    for part, weight in zip(parts, (TO_QUERY, TO_KEY, TO_VALUE), strict=True):
        assert isinstance(part, nn.Linear)
        part.weight.data = torch.tensor(weight, dtype=torch.float64)
        nn.init.zeros_(part.bias)
    return attention


@torch.inference_mode()
def explain_lecture() -> Explanation:
    """What the second state reads, and what softer choices make of the same scores."""
    labels = tuple(formulas.at("h", number) for number in range(1, len(STATES) + 1))
    states = torch.tensor([STATES], dtype=torch.float64)  # (1, 3, 2)
    everything = torch.ones(1, len(STATES), dtype=torch.bool)
    memory = Memory(states, everything, states[:, :0])
    tokens = torch.zeros(1, ASKING, dtype=torch.long)  # only counted: this is step 2
    scene = Scene(memory, tokens, Words(labels, ()), 0, 0, Story())
    attention = lecture_attention()
    asking = formulas.at("h", ASKING)
    look = attention.lay_open(states[:, ASKING - 1 : ASKING], states, scene.visible)
    scene.story.begin("what there is")
    scene.story.tell("states", "h", states[0], labels)
    parts = (attention.to_query, attention.to_key, attention.to_value)
    for name, letter, part in zip(("queries", "keys", "values"), "qkv", parts, strict=True):
        assert isinstance(part, nn.Linear)
        rows = tuple(f"row {number + 1}" for number in range(WIDTH))
        scene.story.tell(f"to {name}", f"W{letter}", part.weight, rows)
    scene.story.begin(f"what {asking} reads")
    tell_look(attention, look, Asking(asking, "h", labels), scene)
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
