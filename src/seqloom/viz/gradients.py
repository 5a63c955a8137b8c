"""Draw gradients: as a table in a terminal, or as a figure.

The gradients belong to the inputs of the encoder and decoder steps (`draw_gradients`), or to hidden
states, attention and weights (`draw_loss_gradients`). Norms of the latter differ by orders of
magnitude, so their bars and axes are logarithmic.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from seqloom.analysis.gradients import (
    AttentionNorms,
    GradientProfile,
    GradientTrace,
    LossGradientTrace,
    Matrix,
    Place,
    StateNorms,
    StepGradients,
)
from seqloom.viz.attention_matrix import draw_matrix
from seqloom.viz.attention_terminal import draw_attention
from seqloom.viz.chart import BarChart, LineChart, LineStyle, Series, draw_chart, render_svg
from seqloom.viz.drawing import Drawing, Svg
from seqloom.viz.terminal_format import (
    draw_bar,
    draw_columns,
    fit_to_line,
    format_column,
    format_number,
    strip_word_marker,
)

_STACKED_BAR_CELLS = 36
_BAR_CELLS = 24
_MAX_DECADES = 6
"""Maximum number of powers of ten that logarithmic bars cover. Smaller norms have no bar."""
_MAX_TOKEN_CELLS = 18
_STYLES = ("blue", "cyan")
_BAR_MARKS, _ASCII_BAR_MARKS = "█▒", "#:"
_SIDES = {"source": "source", "target": "decoder input"}
_COLUMNS = {
    "chain": "state",
    "attention": "attention",
    "own": "own step",
    "later": "later steps",
    "whole": "total",
}
"""Column headers of the terminal table."""
_LEGENDS = {
    "chain": "via the encoder's final state",
    "attention": "via attention",
    "own": "from its own step",
    "later": "from later steps",
    "whole": "total",
}
"""Legend entries of the figure."""
_LINE_STYLES: dict[str, LineStyle] = {
    "output": "dotted",
    "recurrence": "dashed",
    "query": "dash-dot",
}
_HARD_NOTE = (
    "This attention selects one key. The selection does not change if a score changes a "
    "little, so the gradients at scores, queries and keys are zero."
)


def draw_gradients(gradients: GradientTrace | GradientProfile, *, ascii_only: bool = False) -> Text:
    """Draw the gradient norm at each encoder step and decoder step as text.

    The text has one table for the source and one for the decoder input, with numbers and bars.
    """
    drawing = Text()
    drawing.append(f"{_headline(gradients)}\n", "bold")
    for name, title in _SIDES.items():
        steps: StepGradients = getattr(gradients, name)
        if steps.labels and any(steps.whole):
            counts = gradients.counts[name] if isinstance(gradients, GradientProfile) else ()
            drawing.append(f"\n{title}\n", "bold blue")
            drawing.append(_step_table(steps, counts, ascii_only))
    return drawing


def _headline(gradients: GradientTrace | GradientProfile | LossGradientTrace) -> str:
    """Return a headline that says which loss was differentiated."""
    loss = "of all steps" if gradients.step is None else f"at step {gradients.step}"
    if isinstance(gradients, GradientProfile):
        return f"gradients of the loss {loss}, mean over {gradients.sentences:,} sentences"
    token = ""
    if gradients.step is not None:
        token = f" ({strip_word_marker(gradients.output[gradients.step - 1])})"
    return f"gradients of the loss {loss}{token}, loss {gradients.loss:.3f}"


def _step_table(steps: StepGradients, counts: Sequence[int], ascii_only: bool) -> Text:
    """Draw a table of gradient norms with a line for each encoder or decoder step.

    counts: for each step, the number of sentences over which the norms are averaged. Empty if the
            norms belong to a single sentence
    """
    labels = [_token_label(label, ascii_only) for label in steps.labels]
    if counts:
        labels = [f"{label} from the end" if label != "0" else "last" for label in labels]
    norms = {**steps.parts, "whole": steps.whole}
    columns = {_COLUMNS[name]: format_column(values) for name, values in norms.items()}
    if counts:
        columns["sentences"] = [str(count) for count in counts]
    bars = _stacked_bars(steps, ascii_only)
    return draw_columns(labels, columns, bars, header_styles=_STYLES[: len(steps.parts)])


def _stacked_bars(steps: StepGradients, ascii_only: bool) -> list[Text]:
    """Draw one bar for each encoder or decoder step.

    The gradient at a step is the sum of two parts, for example one that flows through attention and
    one that does not. The two segments of a bar show the norms of these parts.
    """
    marks = _ASCII_BAR_MARKS if ascii_only else _BAR_MARKS
    rows = list(zip(*steps.parts.values(), strict=True))
    longest = max(map(sum, rows)) or 1.0
    bars = []
    for row in rows:
        bar = Text()
        for norm, mark, style in zip(row, marks, _STYLES, strict=True):
            bar.append(mark * round(norm / longest * _STACKED_BAR_CELLS), style)
        bars.append(bar)
    return bars


def _token_label(piece: str, ascii_only: bool = False) -> str:
    return fit_to_line(strip_word_marker(piece), _MAX_TOKEN_CELLS, ascii_only)


def draw_loss_gradients(
    trace: LossGradientTrace,
    place: Place,
    *,
    head: AttentionNorms | None = None,
    width: int = 80,
    ascii_only: bool = False,
) -> Text:
    """Draw loss gradients at one place in the model, as text for a terminal.

    place: "states" (hidden states), "attention" or "weights"
    head:  attention head to draw, for the place "attention"
    width: maximum width of the heat maps, in terminal cells
    """
    drawing = Text()
    drawing.append(f"{_headline(trace)}\n", "bold")
    match place:
        case "states":
            drawing.append(_states(trace, ascii_only))
        case "weights":
            drawing.append(_weights(trace, ascii_only))
        case "attention":
            assert head is not None
            drawing.append(_attention(trace, head, width, ascii_only))
    return drawing


def _states(trace: LossGradientTrace, ascii_only: bool) -> Text:
    drawing = Text()
    name_of = _ascii_arrows if ascii_only else str
    for side, layers in (("encoder", trace.encoder), ("decoder", trace.decoder)):
        with_parts = [layer for layer in layers if layer.parts]
        for layer in with_parts:
            cell = {"cell": layer.cell} if layer.cell else {}
            columns = {**layer.parts, "total": layer.total, **cell}
            drawing.append(f"\n{side} {name_of(layer.name)}\n", "bold blue")
            drawing.append(_norm_table(layer.labels, columns, layer.total, ascii_only))
        if layers and not with_parts:
            columns = {name_of(layer.name): layer.total for layer in layers}
            drawing.append(f"\n{side}\n", "bold blue")
            drawing.append(_norm_table(layers[0].labels, columns, layers[-1].total, ascii_only))
    return drawing


def _ascii_arrows(name: str) -> str:
    return name.replace("→", "forward").replace("←", "backward")


def _norm_table(
    labels: Sequence[str],
    columns: Mapping[str, Sequence[float]],
    norms: Sequence[float],
    ascii_only: bool,
) -> Text:
    """Draw a table with one line for each token, and a bar that shows one of the norms."""
    scale = _LogScale.of(norms, ascii_only)
    return draw_columns(
        [_token_label(label, ascii_only) for label in labels],
        {name: format_column(values) for name, values in columns.items()},
        [Text(scale.bar(norm), "blue") for norm in norms],
    ).append(scale.legend())


@dataclass(frozen=True)
class _LogScale:
    """Draws norms as bars on a logarithmic scale.

    largest: the norm that has the longest bar
    decades: number of powers of ten that the scale covers. The bar of a norm has length zero if the
             norm is 10^decades times smaller than `largest`
    """

    largest: float
    decades: int
    ascii_only: bool

    @classmethod
    def of(cls, norms: Sequence[float], ascii_only: bool) -> "_LogScale":
        """Return a scale for these norms.

        The scale ends at the largest norm. It includes all norms above zero, unless they span more
        than `_MAX_DECADES` powers of ten.
        """
        positive = [norm for norm in norms if norm > 0] or [1.0]
        decades = math.floor(math.log10(max(positive) / min(positive))) + 1
        return cls(max(positive), min(decades, _MAX_DECADES), ascii_only)

    def bar(self, norm: float) -> str:
        if norm <= 0:
            return ""
        fraction = 1 + math.log10(norm / self.largest) / self.decades
        return draw_bar(fraction, _BAR_CELLS, self.ascii_only)

    def legend(self) -> Text:
        smallest = format_number(self.largest / 10**self.decades)
        ends = f"{smallest} to {format_number(self.largest)}"
        return Text(f"  logarithmic bars: {ends}\n", "dim")


def _weights(trace: LossGradientTrace, ascii_only: bool) -> Text:
    """Draw the gradient norm of each group of parameters, then that of each parameter in the group."""
    groups = trace.group_norms()
    norms = [*groups.values(), *(parameter.norm for parameter in trace.weights)]
    scale = _LogScale.of(norms, ascii_only)
    drawing = Text()
    names = {group: _ascii_arrows(group) if ascii_only else group for group in groups}
    shapes = {
        parameter.name: f"({' x '.join(map(str, parameter.shape))})" for parameter in trace.weights
    }
    margin = max(*map(len, names.values()), *(len(name) + 2 for name in shapes))
    shape_width = max(map(len, shapes.values()))

    def line(name: str, shape: str, norm: float, style: str) -> None:
        number = format_number(norm).rjust(8)
        drawing.append(f"  {name.ljust(margin)}  {shape.rjust(shape_width)}  {number}", style)
        drawing.append(f"  {scale.bar(norm)}".rstrip() + "\n", "blue")

    drawing.append("\n")
    for group, norm in groups.items():
        line(names[group], "", norm, "bold")
        for parameter in trace.weights:
            if parameter.group == group:
                line(f"  {parameter.name}", shapes[parameter.name], parameter.norm, "dim")
    drawing.append(scale.legend())
    return drawing


def _attention(
    trace: LossGradientTrace, head: AttentionNorms, width: int, ascii_only: bool
) -> Text:
    drawing = Text()
    drawing.append(f"layer {head.layer}, head {head.head}\n", "dim")
    if head.is_hard:
        drawing.append(f"{_HARD_NOTE}\n", "italic")
    drawing.append("\nnorms at each decoder step\n", "bold blue")
    columns = {"context": head.context, "query": head.queries, "keys": _step_norms(head.keys)}
    drawing.append(_norm_table(trace.output, columns, head.context, ascii_only))
    outputs = [_token_label(piece, ascii_only) for piece in trace.output]
    sources = [_token_label(piece, ascii_only) for piece in trace.source]
    for name, matrix in _matrices(head, ascii_only).items():
        largest = max((abs(value) for row in matrix for value in row), default=0.0)
        drawing.append(f"\n{name}", "bold blue")
        drawing.append(f"   largest absolute value {format_number(largest)}\n", "dim")
        if largest:
            scaled = [[value / largest for value in row] for row in matrix]
            drawing.append(draw_attention(scaled, outputs, sources, width=width, marks="signs"))
    if any(map(any, head.weights)):
        drawing.append("  - : more weight on this token lowers the loss; + : raises it\n", "dim")
    return drawing


def _matrices(head: AttentionNorms, ascii_only: bool) -> dict[str, Matrix]:
    names = (
        ("weights  dL/dw", "scores  dL/de") if ascii_only else ("weights  ∂L/∂α", "scores  ∂L/∂e")
    )
    return dict(zip(names, (head.weights, head.scores), strict=True))


def _step_norms(rows: Matrix) -> list[float]:
    """Combine the gradient norms of the S keys to one norm for each of the T decoder steps.

    rows: (T, S) norm of the gradient with respect to each key, for each decoder step
    """
    return [math.hypot(*row) for row in rows]


def draw_gradients_figure(gradients: GradientTrace | GradientProfile) -> Svg:
    """Draw the gradient norms of source and decoder input side by side.

    The gradient at a step is the sum of two parts, for example one that flows through attention and
    one that does not. There is a line for each part, and one for the sum. For means over sentences,
    the x axis is the distance of a step from the last step of its sentence.
    """
    is_profile = isinstance(gradients, GradientProfile)
    charts = []
    for side, title in _SIDES.items():
        steps: StepGradients = getattr(gradients, side)
        if any(steps.whole):
            norms = {**steps.parts, "whole": steps.whole}
            lines = [_line(_LEGENDS[name], values) for name, values in norms.items() if any(values)]
            labels = () if is_profile else [_token_label(label) for label in steps.labels]
            x_label = "steps from the end" if is_profile else ""
            charts.append(
                LineChart(
                    x_label,
                    "gradient norm",
                    lines,
                    logarithmic_y=is_profile,
                    title=title,
                    labels=labels,
                )
            )
    return render_svg(*charts, title=_headline(gradients))


def _line(name: str, norms: Sequence[float]) -> Series:
    return Series(name, range(len(norms)), [[norm] for norm in norms])


def draw_loss_gradients_figure(
    trace: LossGradientTrace, place: Place, head: AttentionNorms | None = None
) -> Svg:
    """Draw loss gradients at one place in the model.

    place: "states" (hidden states), "attention" or "weights"
    head:  attention head to draw, for the place "attention"
    """
    match place:
        case "states":
            sides = {"encoder states h": trace.encoder, "decoder states s": trace.decoder}
            charts = [_states_chart(title, layers) for title, layers in sides.items() if layers]
            return render_svg(*charts, title=_headline(trace))
        case "weights":
            names = [each.name for each in trace.weights]
            norms = [[each.norm] for each in trace.weights]
            groups = [each.group for each in trace.weights]
            chart = BarChart("gradient norm", names, norms, scale="logarithmic", groups=groups)
            return render_svg(chart, title=_headline(trace))
        case "attention":
            assert head is not None
            return _attention_figure(trace, head)


def _states_chart(title: str, layers: Sequence[StateNorms]) -> LineChart:
    """Return a chart with a line for each layer.

    For one or two layers, it also has a line for each part of the gradient, for example the part
    that flows through the next step.
    """
    lines = []
    for colour, layer in enumerate(layers):
        parts = layer.parts if len(layers) <= 2 else {}
        for name, norms in {"": layer.total, **parts}.items():
            if any(norms) or not name:
                values = [[norm] for norm in norms]
                legend = f"{layer.name}: {name}" if name else layer.name
                style = _LINE_STYLES.get(name, "")
                lines.append(Series(legend, range(len(norms)), values, colour, style))
    labels = [_token_label(label) for label in layers[0].labels]
    return LineChart("", "gradient norm", lines, logarithmic_y=True, title=title, labels=labels)


def _attention_figure(trace: LossGradientTrace, head: AttentionNorms) -> Svg:
    """Draw the gradients of one attention head.

    Two matrices show the gradients of the loss L at the weights α and the scores e, with a row per
    output token and a column per source token: red if more weight raises the loss, blue if it lowers
    the loss. A chart shows the gradient norms at the context vector, the query and the keys of each
    step.
    """
    label = f"layer {head.layer}, head {head.head}"
    note = f"{label}. {_HARD_NOTE}" if head.is_hard else label
    drawing = Drawing(_headline(trace), f"{note}.")
    drawing.text(0, 26, note, "start", "soft")
    for name, matrix in _matrices(head, ascii_only=False).items():
        drawing.origin = (0, drawing.bottom + 24)
        drawing.text(0, 0, name, "start", "bold")
        drawing.origin = (0, drawing.origin[1] + 14)
        draw_matrix(drawing, matrix, trace.output, trace.source, signed=True)
    norms = {"context a": head.context, "query q": head.queries, "keys k": _step_norms(head.keys)}
    labels = [_token_label(piece) for piece in trace.output]
    lines = [_line(name, values) for name, values in norms.items()]
    drawing.origin = (0, drawing.bottom + 24)
    chart = LineChart("", "gradient norm", lines, logarithmic_y=True, labels=labels)
    draw_chart(drawing, replace(chart, title="norms per step"))
    return drawing.render()
