"""Writes the formulas of a model's modules as text, with the options and widths of that model."""

from typing import assert_never

from torch import nn

from seqloom.nn.attention import (
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    DotScore,
    ExactScore,
    FixedScore,
    PositionScore,
    RbfScore,
)
from seqloom.nn.embedding import ConstantLookup, LearnedLookup, Lookup, OneHotLookup
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.positions import (
    LearnedPositions,
    OneHotPositions,
    Positions,
    PositionTable,
    SinusoidalPositions,
)
from seqloom.nn.recurrent import Cell, RecurrentLayer
from seqloom.text.vocabulary import SPECIAL_TOKENS

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def indexed(letter: str, step: int) -> str:
    """Append a step as a subscript: s, 3 -> s₃"""
    return f"{letter}{step}".translate(_SUBSCRIPTS)


def indexed_layer(letter: str, layer: int, layers: int, step: int) -> str:
    """Append the layer as a superscript and the step as a subscript: s, layer 2, step 3 -> s²₃

    If there is only one layer, the superscript is omitted: s₃
    """
    superscript = "" if layers == 1 else str(layer).translate(_SUPERSCRIPTS)
    return f"{letter}{superscript}{str(step).translate(_SUBSCRIPTS)}"


def concatenated(symbols: list[str]) -> str:
    """Write a concatenation: [s₃; a₃]. A single symbol has no brackets."""
    return symbols[0] if len(symbols) == 1 else f"[{'; '.join(symbols)}]"


def embedding(lookup: Lookup, token: str) -> str:
    """Formula of the embedding of a token."""
    match lookup:
        case LearnedLookup(scale=1.0):
            return f"E[{token}]"
        case LearnedLookup():
            return f"√{lookup.width} · E[{token}]"
        case OneHotLookup():
            return f"one-hot({token})"
        case ConstantLookup(projection=None):
            return f"a learned vector that does not depend on {token}"
        case _:
            return f"W {token} + b"


def start_embedding(lookup: Lookup, token: str) -> str:
    """Formula of the embedding that a decoder reads at its first step.

    This is the embedding of START, unless `lookup` replaces it by zeros or by the embedding of
    another special token.

    token: symbol of START in the formula, for example y₀
    """
    replaced = lookup.replaced if isinstance(lookup, LearnedLookup) else None
    if replaced is None:
        return embedding(lookup, token)
    return "0" if replaced.by is None else embedding(lookup, SPECIAL_TOKENS[replaced.by])


def position(positions: Positions, step: int) -> str:
    """Formula of the encoding of a position. Positions are counted from 0."""
    match positions:
        case SinusoidalPositions():
            return _sinusoid(positions, step + positions.offset)
        case OneHotPositions():
            return f"one-hot({step})"
        case LearnedPositions():
            return f"P[{step}]"
        case _:
            raise AssertionError(f"no formula for {type(positions).__name__}")


def _sinusoid(positions: SinusoidalPositions, step: int) -> str:
    first, second = ("ω₁", "ω₂") if positions.frequencies == "lecture" else ("ω₀", "ω₁")
    if positions.layout == "halves":
        entries = f"[sin({first}·{step}), sin({second}·{step}), …, cos({first}·{step}), …]"
    else:
        entries = f"[sin({first}·{step}), cos({first}·{step}), …]"
    width = positions.width
    exponent = f"-k/({width}/2-1)" if positions.frequencies == "fairseq" else f"-2k/{width}"
    return f"{entries}, ω_k = 10000^({exponent})"


def with_position(positions: PositionTable) -> str:
    """Formula that combines the token embedding w with the position encoding p."""
    return "[w; p]" if positions.join == "append" else "w + p"


def fitted(vector: str, fit: nn.Module) -> str:
    """Formula of a vector after its projection to the width of the network.

    vector: formula of the vector before the projection
    fit:    the projection. If it is an `nn.Identity`, the result is `vector`.
    """
    return vector if isinstance(fit, nn.Identity) else f"W ({vector}) + b"


def query(attention: MultiHeadAttention, state: str, head: int, position: int) -> str:
    """Formula of the query of one head.

    state:    symbol of the state from which the query is computed
    head:     counted from 0
    position: position of the query, counted from 0. Only rotary attention uses it.
    """
    plan = attention
    projected = _layers(plan, [plan.to_query, *plan.query_layers], "q", state)
    formula = _slice(projected, head, plan.heads, plan.query_head_width)
    return f"rotated by {position} × ω, {formula}" if attention.rotary else formula


def key(attention: MultiHeadAttention, state: str, head: int) -> str:
    """Formula of the keys of one head.

    state: symbol of the source states, from which the keys are computed
    head:  counted from 0
    """
    plan = attention
    projected = _layers(plan, [plan.to_key, *plan.key_layers], "k", state)
    formula = _slice(projected, head, plan.heads, plan.key_head_width)
    return f"rotated by the position × ω, {formula}" if attention.rotary else formula


def value(attention: MultiHeadAttention, state: str, head: int) -> str:
    """Formula of the values of one head.

    state: symbol of the source states, from which the values are computed
    head:  counted from 0
    """
    plan = attention
    projected = _projected(attention.to_value, "v", state)
    return _slice(projected, head, plan.heads, plan.value_width // plan.heads)


def _layers(plan: MultiHeadAttention, layers: list[nn.Module], letter: str, state: str) -> str:
    """Formula of queries or keys, for example σ(Wq s + bq).

    If there are two projection layers, the formula is σ(Wq₂ σ(Wq₁ s + bq₁) + bq₂).
    """
    formula = state
    for number, layer in enumerate(layers, start=1):
        name = letter if len(layers) == 1 else indexed(letter, number)
        formula = _activated(plan, _projected(layer, name, formula))
    return formula


def _projected(module: nn.Module, letter: str, state: str) -> str:
    """Formula of a projected state, for example Wq s + bq. A bias of zero is omitted.

    If the module is not a linear projection, the formula is the symbol of the state.
    """
    if not isinstance(module, nn.Linear):
        return state
    bias = f" + b{letter}" if bool(module.bias.any()) else ""
    return f"W{letter} {state}{bias}"


def _activated(plan: MultiHeadAttention, projected: str) -> str:
    match plan.projection:
        case "none" | "linear":
            return projected
        case "sigmoid":
            return f"σ({projected})"
        case "tanh":
            return f"tanh({projected})"
        case _:
            assert_never(plan.projection)


def _slice(formula: str, head: int, heads: int, width: int) -> str:
    """Append the range of dimensions that belong to one head: head 0 of width 16 -> [1…16]

    If there is only one head, the formula is returned unchanged.
    """
    if heads == 1:
        return formula
    is_single_term = " " not in formula or formula.endswith(")")
    inner = formula if is_single_term else f"({formula})"
    return f"{inner}[{head * width + 1}…{(head + 1) * width}]"


def score(score: AttentionScore, width: int) -> str:
    """Formula of the attention score of query q and key k. width: width of the query"""
    if is_extension(score):
        return f"{type(score).__name__}(q, k)"
    match score:
        case DotScore():
            return "q · k" if score.divisor == 1 else f"q · k / {divisor(score, width)}"
        case BilinearScore():
            return "qᵀ W k"
        case AdditiveScore():
            return "v · tanh(Wq q + Wk k + b)"
        case RbfScore():
            return "-‖q - k‖²" if score.gamma == 1 else f"-{score.gamma:g} ‖q - k‖²"
        case ExactScore(tolerance=0):
            return "1 if q = k, else 0"
        case ExactScore(tolerance=tolerance):
            return f"1 if max |q - k| ≤ {tolerance:g}, else 0"
        case FixedScore():
            return "w[s]"
        case PositionScore():
            return "w[t, s]"
        case _:
            raise AssertionError(f"no formula for {type(score).__name__}")


def is_extension(score: AttentionScore) -> bool:
    """True if the class of the score is defined outside seqloom. Its formula is not known."""
    return type(score).__module__ != AttentionScore.__module__


def divisor(score: DotScore, width: int) -> str:
    """Write the divisor of a dot product, for example √64 or 64."""
    return str(width) if score.divisor == width else f"√{width}"


def score_note(score: AttentionScore) -> str:
    """Return a remark on a score function, for example "W is 64 × 64"; "" if there is none."""
    if is_extension(score):
        return f"from {type(score).__module__}, outside seqloom"
    match score:
        case BilinearScore(weight=weight):
            _, rows, columns = weight.shape
            return f"W is {rows} × {columns}"
        case AdditiveScore(to_score=to_score):
            return f"the hidden layer has width {to_score.shape[1]}"
        case RbfScore():
            return "the logarithm of a radial basis function"
        case FixedScore():
            return "a learned number for each source position s, the same at every step"
        case PositionScore():
            return "a learned number for each step t and source position s"
        case _:
            return ""


def weights(attention: MultiHeadAttention) -> str:
    """Formula that computes the attention weights from the scores e."""
    match attention.selection:
        case "softmax":
            return "softmax(e)"
        case "argmax":
            nearest = isinstance(attention.score, RbfScore)
            return f"1 for the {'nearest key' if nearest else 'best score'}, else 0"
        case "exact":
            return "1 for the first key with e = 1, else 0"
        case _:
            assert_never(attention.selection)


def context(attention: MultiHeadAttention) -> str:
    """Formula that computes the context vector from the outputs rᵢ of the heads."""
    heads = attention.heads
    outputs = {1: "r", 2: "[r₁; r₂]"}.get(heads, f"[r₁; …; {indexed('r', heads)}]")
    return outputs if isinstance(attention.output_projection, nn.Identity) else f"Wo {outputs} + bo"


def score_gradients(attention: MultiHeadAttention) -> str:
    """Formula of the gradient at the scores e, given the gradient at the weights α."""
    match attention.selection:
        case "softmax":
            return "(diag(α) - α αᵀ) ∂L/∂α"
        case "argmax" | "exact":
            return "0"
        case _:
            assert_never(attention.selection)


def query_gradient(score: AttentionScore, width: int) -> str:
    """Formula of the gradient of the loss with respect to the query q: a sum over the keys."""
    if is_extension(score):
        return "Σ ∂L/∂e · ∂e/∂q"
    match score:
        case DotScore():
            return f"Σ ∂L/∂e · k{_divided(score, width)}"
        case BilinearScore():
            return "Σ ∂L/∂e · W k"
        case AdditiveScore():
            return "Σ ∂L/∂e · Wqᵀ (v ∘ (1 - u²))"
        case RbfScore(gamma=gamma):
            return f"Σ ∂L/∂e · {2 * gamma:g} (k - q)"
        case FixedScore() | PositionScore():
            return "0, because e does not depend on q"
        case _:
            raise AssertionError(f"no formula for {type(score).__name__}")


def key_gradient(score: AttentionScore, width: int) -> str:
    """Formula of the gradient at each key k."""
    if is_extension(score):
        return "∂L/∂e · ∂e/∂k"
    match score:
        case DotScore():
            return f"∂L/∂e · q{_divided(score, width)}"
        case BilinearScore():
            return "∂L/∂e · Wᵀ q"
        case AdditiveScore():
            return "∂L/∂e · Wkᵀ (v ∘ (1 - u²))"
        case RbfScore(gamma=gamma):
            return f"∂L/∂e · {2 * gamma:g} (q - k)"
        case FixedScore() | PositionScore():
            return "0, because e does not depend on k"
        case _:
            raise AssertionError(f"no formula for {type(score).__name__}")


def key_gradient_note(score: AttentionScore) -> str:
    """Return the definition of the symbol u, or "" if the score is not additive.

    `query_gradient` and `key_gradient` use u in the formulas for the additive score.
    """
    return "u = tanh(Wq q + Wk k + b)" if type(score) is AdditiveScore else ""


def _divided(score: DotScore, width: int) -> str:
    return "" if score.divisor == 1 else f" / {divisor(score, width)}"


def cell(layer: RecurrentLayer, input_: str, state: str) -> str:
    """Formula of the new state of a recurrent layer."""
    if layer.cell == "rnn":
        return f"tanh(W {input_} + U {state} + b)"
    return f"{layer.cell.upper()}({input_}, {state})"


def cell_note(kind: Cell) -> str:
    """Return the equations of a GRU or LSTM cell with input x and state s, without biases.

    The result is "" for a vanilla RNN cell: the function `cell` already returns its equation.
    """
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
