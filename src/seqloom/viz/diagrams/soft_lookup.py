"""Draw attention as a soft lookup: query, keys, scores, weights, values and their weighted mean."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.analysis.explanation import Explanation
from seqloom.analysis.lookup import LookupResult, LookupTable, look_up, soft_score
from seqloom.core.errors import ConfigError
from seqloom.nn.formulas import indexed
from seqloom.viz.drawing import Drawing, Svg, text_width, token_label, widest
from seqloom.viz.terminal_format import format_number

_ROW = 34
_GAP = 28
_BAR = 130
_PLANE = 220.0
"""Side of the plane of keys in pixels."""
_SHOWN = 3
"""Maximum number of entries of a vector that are drawn."""


@dataclass(frozen=True)
class _Lookup:
    """The numbers of a soft lookup, with one name, key, value, score and weight per row."""

    title: str
    query: Sequence[float]
    names: Sequence[str]
    keys: Sequence[Sequence[float]]
    values: Sequence[Sequence[float]]
    score_formula: str
    scores: Sequence[float]
    weights_formula: str
    weights: Sequence[float]
    result: Sequence[float]


def draw_soft_lookup(lookup: LookupTable | Explanation) -> Svg:
    """Draw how attention computes a weighted mean of all values for a query.

    lookup: a table of keys and values, or the explanation of a decoder step with attention. Only
            the first entries of long vectors are drawn.
    """
    if isinstance(lookup, LookupTable):
        numbers = _of_table(lookup, look_up(lookup, "soft"), "Attention as a soft lookup")
    else:
        numbers = _of_step(lookup)
    drawing = Drawing(numbers.title, _description(numbers))
    _draw(drawing, numbers)
    return drawing.render()


def draw_lookups(table: LookupTable, results: Sequence[LookupResult]) -> Svg:
    """Draw several lookups in the same table, for example exact, nearest and soft.

    If the keys have two dimensions, they are also drawn as points in the plane.
    """
    lookups = [
        _of_table(table, result, f"{result.method}: r = {_vector(result.result)}")
        for result in results
    ]
    drawing = Drawing("", " ".join(f"{each.title}. {_description(each)}" for each in lookups))
    for numbers in lookups:
        top = drawing.bottom + 28 if drawing.shapes else 0.0
        drawing.origin = (0, top)
        drawing.text(0, 8, numbers.title, "start", "bold")
        if len(table.query) == 2:
            _draw_plane(drawing, numbers)
            drawing.origin = (_PLANE + 40, top)
        _draw(drawing, numbers)
    return drawing.render()


def _draw(drawing: Drawing, numbers: _Lookup) -> None:
    """Draw a row with key, score, weight and value for each key, and the result."""
    names = [
        f"{name} {_vector(key)}" for name, key in zip(numbers.names, numbers.keys, strict=True)
    ]
    scores = [format_number(score) for score in numbers.scores]
    values = [_vector(value) for value in numbers.values]
    key_width = widest([*names, "key"]) + 20
    score_x = key_width + _GAP
    score_width = widest([*scores, numbers.score_formula])
    bar_x = score_x + score_width + _GAP
    value_x = bar_x + max(_BAR + 44, text_width(numbers.weights_formula)) + _GAP
    value_width = widest([*values, "value"]) + 20
    result_x = value_x + value_width + 2.2 * _GAP
    top = 104.0
    bottom = top + _ROW * len(names)
    query = f"query q = {_vector(numbers.query)}"
    drawing.box(0, 28, text_width(query) + 16, [query], "state")
    for x, heading in (
        (score_x, numbers.score_formula),
        (bar_x, numbers.weights_formula),
        (value_x, "value"),
        (0, "key"),
    ):
        drawing.text(x, top - 16, heading, "start", "soft")
    for row, (name, value, weight) in enumerate(zip(names, values, numbers.weights, strict=True)):
        y = top + _ROW * row
        middle = y + _ROW / 2
        drawing.box(0, y + 2, key_width, [name], "plain", _ROW - 4)
        drawing.text(score_x, middle, scores[row], "start")
        drawing.rectangle(bar_x, middle - 8, max(_BAR * weight, 1), 16, "shade", radius=2)
        drawing.text(bar_x + _BAR * weight + 6, middle, f"{weight:.3f}", "start")
        drawing.box(value_x, y + 2, value_width, [value], "plain", _ROW - 4)
        if weight:
            drawing.arrow(
                (value_x + value_width, middle),
                (result_x, (top + bottom) / 2),
                strong=True,
                width=0.4 + 5 * weight,
            )
    result = f"Σ α v = {_vector(numbers.result)}"
    height = _ROW - 2
    drawing.box(
        result_x, (top + bottom - height) / 2, text_width(result) + 20, [result], "result", height
    )


def _draw_plane(drawing: Drawing, numbers: _Lookup) -> None:
    """Draw the keys as points in the plane, and the query as a cross.

    The circle of a key is larger and darker if its weight is larger. Both axes show the same
    length, so that distances can be compared.
    """
    ranges = [
        (min(column), max(column)) for column in zip(numbers.query, *numbers.keys, strict=True)
    ]
    span = 1.4 * max(high - low for low, high in ranges) or 2.0
    left, bottom = ((low + high - span) / 2 for low, high in ranges)

    def place(point: Sequence[float]) -> tuple[float, float]:
        return _PLANE * (point[0] - left) / span, 34 + _PLANE * (1 - (point[1] - bottom) / span)

    drawing.rectangle(0, 34, _PLANE, _PLANE, "plain", radius=6)
    query = place(numbers.query)
    for name, key, value, weight in zip(
        numbers.names, numbers.keys, numbers.values, numbers.weights, strict=True
    ):
        x, y = place(key)
        if weight:
            drawing.line(query, (x, y), style="branch", width=8 * weight)
        radius = 5 + 8 * weight
        drawing.circle(x, y, radius, "paper")
        drawing.circle(x, y, radius, "shade", opacity=weight)
        drawing.circle(x, y, radius, "edge")
        drawing.text(x, y - radius - 9, f"{name}: v = {_vector(value)}", size=12)
    x, y = query
    for sign in (1, -1):
        drawing.line((x - 6, y - 6 * sign), (x + 6, y + 6 * sign), style="cross", width=3)
    drawing.text(x - 16, y, "q", style="bold")


def _of_table(table: LookupTable, found: LookupResult, title: str) -> _Lookup:
    is_soft = found.method == "soft"
    divisor = "" if table.temperature == 1 else f" / {table.temperature:g}"
    return _Lookup(
        title=title,
        query=table.query,
        names=[indexed("k", number + 1) for number in range(len(table.keys))],
        keys=table.keys,
        values=table.values,
        score_formula=f"e = {soft_score(table).formula}" if is_soft else "score",
        scores=found.scores,
        weights_formula=f"α = softmax(e{divisor})" if is_soft else f"α = {found.formula}",
        weights=found.weights,
        result=found.result,
    )


def _of_step(explanation: Explanation) -> _Lookup:
    weighted = [value for value in explanation.parts if value.name == "weights"]
    section = weighted[-1].section if weighted else ""  # cross-attention follows self-attention
    names = {value.name for value in explanation.parts if value.section == section}
    if not {"query", "keys"} <= names:
        raise ConfigError(
            "this decoder does not compare queries with keys, so there is no lookup to draw. Use a "
            "run with attention (model.decoder.attention.kind = 'attention') whose score depends on "
            "queries and keys, for example model.decoder.attention.score.kind = 'dot'."
        )
    query, keys, scores, weights, values = (
        explanation.find(name, section) for name in ("query", "keys", "scores", "weights", "values")
    )
    token = "" if explanation.answer is None else f", {token_label(explanation.answer.piece)}"
    return _Lookup(
        title=f"Attention at output token {explanation.step}{token}",
        query=query.values.tolist(),
        names=[token_label(piece) for piece in weights.labels],
        keys=keys.values.tolist(),
        values=values.values.tolist(),
        score_formula=scores.formula,
        scores=scores.values.tolist(),
        weights_formula=weights.formula,
        weights=weights.values.tolist(),
        result=(weights.values @ values.values).tolist(),
    )


def _vector(values: Sequence[float]) -> str:
    numbers = [f"{value:.3g}" for value in values[:_SHOWN]]
    if len(values) > _SHOWN:
        numbers.append("…")
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def _description(numbers: _Lookup) -> str:
    weights = ", ".join(
        f"{name} {weight:.3f}" for name, weight in zip(numbers.names, numbers.weights, strict=True)
    )
    return f"Weights of the keys: {weights}. Result: {_vector(numbers.result)}."
