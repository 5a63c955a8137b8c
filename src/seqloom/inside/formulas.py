"""The formulas of a model's parts, as its own switches and widths have them."""

from typing import assert_never

from torch import nn

from seqloom.nn.attention import AdditiveScore, BilinearScore, DotScore, RbfScore, Score
from seqloom.nn.embedding import LearnedLookup, Lookup, OneHotLookup
from seqloom.nn.multihead import AttentionPlan, MultiHeadAttention
from seqloom.nn.positions import (
    LearnedPositions,
    OneHotPositions,
    Positions,
    PositionTable,
    SinusoidalPositions,
)
from seqloom.nn.recurrent import Cell, RecurrentLayer

_LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_HIGH = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def at(letter: str, step: int) -> str:
    """s, 3 -> s₃"""
    return f"{letter}{step}".translate(_LOW)


def of_layer(letter: str, layer: int, layers: int, step: int) -> str:
    """s of layer 2 of 2 at step 3 -> s²₃; a single layer needs no number."""
    high = "" if layers == 1 else str(layer).translate(_HIGH)
    return f"{letter}{high}{str(step).translate(_LOW)}"


def joined(parts: list[str]) -> str:
    """Side by side: [s₃; a₃]; one alone is itself."""
    return parts[0] if len(parts) == 1 else f"[{'; '.join(parts)}]"


def embedding(lookup: Lookup, token: str) -> str:
    """How a token becomes a vector."""
    match lookup:
        case LearnedLookup(scale=1.0):
            return f"E[{token}]"
        case LearnedLookup():
            return f"√{lookup.width} · E[{token}]"
        case OneHotLookup():
            return f"one-hot({token})"
        case _:
            return f"W {token} + b"


def position(positions: Positions, step: int) -> str:
    """How a position becomes a vector; positions count from 0."""
    match positions:
        case SinusoidalPositions():
            return f"[sin(ω₁·{step}), cos(ω₁·{step}), …], ω_k = 10000^(-2k/{positions.width})"
        case OneHotPositions():
            return f"one-hot({step})"
        case LearnedPositions():
            return f"P[{step}]"
        case _:
            raise AssertionError("only tables are told")


def placed(positions: PositionTable) -> str:
    """A token's vector w and its position's p as one."""
    return "[w; p]" if positions.join == "append" else "w + p"


def fitted(vector: str, fit: nn.Module) -> str:
    """A vector brought to the width of the network, if it has not that width already."""
    return vector if isinstance(fit, nn.Identity) else f"W ({vector}) + b"


def query(attention: MultiHeadAttention, state: str, head: int, position: int) -> str:
    """How a state asks."""
    plan = attention.plan
    projected = _bent(plan, _mapped(attention.to_query, "q", state))
    asked = _slice(projected, head, plan.heads, plan.query_head)
    return f"turned by {position} × ω, {asked}" if attention.rotary else asked


def key(attention: MultiHeadAttention, state: str, head: int) -> str:
    """How a state answers."""
    plan = attention.plan
    projected = _bent(plan, _mapped(attention.to_key, "k", state))
    found = _slice(projected, head, plan.heads, plan.key_head)
    return f"turned by its position × ω, {found}" if attention.rotary else found


def value(attention: MultiHeadAttention, state: str, head: int) -> str:
    """What is read of a state."""
    plan = attention.plan
    read = _mapped(attention.to_value, "v", state)
    return _slice(read, head, plan.heads, plan.value_width // plan.heads)


def _mapped(part: nn.Module, letter: str, state: str) -> str:
    """Wq s + bq; the state itself where there is no map, and no bias where it is zero."""
    if not isinstance(part, nn.Linear):
        return state
    bias = f" + b{letter}" if bool(part.bias.any()) else ""
    return f"W{letter} {state}{bias}"


def _bent(plan: AttentionPlan, mapped: str) -> str:
    match plan.projection:
        case "none" | "linear":
            return mapped
        case "sigmoid":
            return f"σ({mapped})"
        case "tanh":
            return f"tanh({mapped})"
        case _:
            assert_never(plan.projection)


def _slice(formula: str, head: int, heads: int, width: int) -> str:
    """The numbers that belong to a head, counted from 1."""
    if heads == 1:
        return formula
    whole = " " not in formula or formula.endswith(")")
    inner = formula if whole else f"({formula})"
    return f"{inner}[{head * width + 1}…{(head + 1) * width}]"


def score(score: Score, width: int) -> str:
    """How well q and k match; width: of the query."""
    match score:
        case DotScore():
            return "q · k" if score.divisor == 1 else f"q · k / {divisor(score, width)}"
        case BilinearScore():
            return "qᵀ W k"
        case AdditiveScore():
            return "v · tanh(Wq q + Wk k + b)"
        case RbfScore():
            return "-‖q - k‖²" if score.gamma == 1 else f"-{score.gamma:g} ‖q - k‖²"
        case _:
            raise AssertionError("every score has its formula")


def divisor(score: DotScore, width: int) -> str:
    """√64, or 64."""
    return str(width) if score.divisor == width else f"√{width}"


def score_note(score: Score) -> str:
    """The sizes of what a score has learned."""
    match score:
        case BilinearScore(weight=weight):
            _, rows, columns = weight.shape
            return f"W is {rows} × {columns}"
        case AdditiveScore(to_score=to_score):
            return f"a hidden layer of {to_score.shape[1]}"
        case RbfScore():
            return "the logarithm of a radial basis function"
        case _:
            return ""


def weights(attention: MultiHeadAttention) -> str:
    """How scores become weights."""
    match attention.selection:
        case "softmax":
            return "softmax(e)"
        case "argmax":
            nearest = isinstance(attention.score, RbfScore)
            return f"1 for the {'nearest key' if nearest else 'best score'}, else 0"
        case _:
            assert_never(attention.selection)


def context(attention: MultiHeadAttention) -> str:
    """What all heads have read, together; head i has read rᵢ."""
    heads = attention.plan.heads
    read = {1: "r", 2: "[r₁; r₂]"}.get(heads, f"[r₁; …; {at('r', heads)}]")
    return read if isinstance(attention.merge, nn.Identity) else f"Wo {read} + bo"


def cell(layer: RecurrentLayer, input_: str, state: str) -> str:
    """How a state goes on."""
    if layer.cell == "rnn":
        return f"tanh(W {input_} + U {state} + b)"
    return f"{layer.cell.upper()}({input_}, {state})"


def cell_note(kind: Cell) -> str:
    """What a cell computes from its input x and its state; biases are left out."""
    match kind:
        case "rnn":
            return ""
        case "gru":
            return (
                "r = σ(Wr x + Ur s), z = σ(Wz x + Uz s), n = tanh(Wn x + r∘Un s), "
                "s′ = (1 - z)∘n + z∘s"
            )
        case "lstm":
            return (
                "s has a cell m: i, f, o = σ(W x + U s), m′ = f∘m + i∘tanh(Wm x + Um s), "
                "s′ = o∘tanh(m′)"
            )
        case _:
            assert_never(kind)
