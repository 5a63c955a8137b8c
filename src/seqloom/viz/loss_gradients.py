"""Draw loss gradients at hidden states, inside attention and at the weights.

Norms differ by orders of magnitude, so their bars and axes are logarithmic.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from seqloom.analysis.gradients import (
    AttentionNorms,
    LossGradientTrace,
    Matrix,
    Place,
    StateNorms,
)
from seqloom.viz.attention_terminal import draw_attention
from seqloom.viz.figures import create_figure, save_figure
from seqloom.viz.gradients import headline, token_label
from seqloom.viz.terminal_format import draw_bar, format_column, format_number, pad_to_width

_BAR_CELLS = 24
_MAX_DECADES = 6
"""Maximum number of powers of ten that logarithmic bars cover. Smaller norms have no bar."""
_PART_LINES = {"output": ":", "recurrence": "--", "query": "-."}
_COLOURS = ("#08519c", "#d94801", "#238b45", "#6a51a3", "#a50f15", "#636363")
_HARD_NOTE = (
    "This attention selects one key. The selection does not change if a score changes a "
    "little, so the gradients at scores, queries and keys are zero."
)


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
    drawing.append(f"{headline(trace)}\n", "bold")
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
    for side, layers in (("encoder", trace.encoder), ("decoder", trace.decoder)):
        with_parts = [layer for layer in layers if layer.parts]
        for layer in with_parts:
            cell = {"cell": layer.cell} if layer.cell else {}
            columns = {**layer.parts, "total": layer.total, **cell}
            name = _ascii_arrows(layer.name) if ascii_only else layer.name
            drawing.append(f"\n{side} {name}\n", "bold blue")
            drawing.append(_table(layer.labels, columns, layer.total, ascii_only))
        if layers and not with_parts:
            name_of = _ascii_arrows if ascii_only else str
            columns = {name_of(layer.name): layer.total for layer in layers}
            drawing.append(f"\n{side}\n", "bold blue")
            drawing.append(_table(layers[0].labels, columns, layers[-1].total, ascii_only))
    return drawing


def _ascii_arrows(name: str) -> str:
    return name.replace("→", "forward").replace("←", "backward")


def _table(
    labels: Sequence[str],
    columns: Mapping[str, Sequence[float]],
    bars: Sequence[float],
    ascii_only: bool,
) -> Text:
    """Draw a table with one line for each token.

    columns: numbers of each column, by the name of the column; one number for each token
    bars:    for each token, the norm that the bar at the end of its line shows
    """
    tokens = [token_label(label, ascii_only) for label in labels]
    margin = max(map(cell_len, tokens))
    entries = {name: format_column(values) for name, values in columns.items()}
    widths = {name: max(len(name), *map(len, values)) for name, values in entries.items()}
    drawing = Text("  " + " " * margin)
    for name, cells in widths.items():
        drawing.append("   " + name.rjust(cells), "dim")
    drawing.append("\n")
    scale = _LogScale.of(bars, ascii_only)
    for row, token in enumerate(tokens):
        drawing.append("  " + pad_to_width(token, margin))
        for name, cells in widths.items():
            drawing.append("   " + entries[name][row].rjust(cells))
        drawing.append(f"  {scale.bar(bars[row])}".rstrip(), "blue")
        drawing.append("\n")
    drawing.append(scale.legend())
    return drawing


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
    drawing.append(_table(trace.output, columns, head.context, ascii_only))
    outputs = [token_label(piece, ascii_only) for piece in trace.output]
    sources = [token_label(piece, ascii_only) for piece in trace.source]
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


def save_loss_gradients(
    path: Path, trace: LossGradientTrace, place: Place, head: AttentionNorms | None = None
) -> None:
    """Draw loss gradients at one place in the model as a figure.

    path:  its suffix selects the image format
    place: "states" (hidden states), "attention" or "weights"
    head:  attention head to draw, for the place "attention"
    """
    match place:
        case "states":
            figure = _states_figure(path, trace)
        case "weights":
            figure = _weights_figure(path, trace)
        case "attention":
            assert head is not None
            figure = _attention_figure(path, trace, head)
    figure.suptitle(headline(trace), fontsize=12, parse_math=False)
    save_figure(path, figure)


def _states_figure(path: Path, trace: LossGradientTrace) -> Any:
    """Draw the gradient norms at hidden states, with a curve for each layer.

    The figure has one panel for the encoder and one for the decoder.
    """
    sides = {"encoder states h": trace.encoder, "decoder states s": trace.decoder}
    shown = {title: layers for title, layers in sides.items() if layers}
    sizes = [max(len(layers[0].labels), 6) for layers in shown.values()]
    width = min(max(0.5 * sum(sizes) + 2.5, 8.0), 24.0)
    figure = create_figure(path, (width, 4.6), "drawing gradients")
    grid = figure.subplots(1, len(shown), squeeze=False, width_ratios=sizes)[0]
    for axes, (title, layers) in zip(grid, shown.items(), strict=True):
        for index, layer in enumerate(layers):
            _draw_layer(axes, layer, _COLOURS[index % len(_COLOURS)], len(layers) <= 2)
        _label_steps(axes, layers[0].labels)
        if any(any(layer.total) for layer in layers):
            axes.set_yscale("log")
        axes.set_title(title, fontsize=11)
        axes.legend(frameon=False, fontsize=8)
    grid[0].set_ylabel("gradient norm")
    return figure


def _draw_layer(axes: Any, layer: StateNorms, colour: str, with_parts: bool) -> None:
    """Draw a curve of the gradient norms at the hidden states of one layer.

    Norms of zero are left out, because the axis is logarithmic.

    with_parts: True to also draw a curve for each part of the gradient, for example the part that
                flows through the next step
    """
    positions = range(len(layer.labels))

    def visible(norms: Sequence[float]) -> list[float]:
        return [norm or math.nan for norm in norms]

    axes.plot(positions, visible(layer.total), "o-", color=colour, label=layer.name, ms=4)
    for name, norms in layer.parts.items() if with_parts else ():
        if any(norms):
            style = _PART_LINES[name]
            label = f"{layer.name}: {name}"
            axes.plot(positions, visible(norms), style, marker=".", color=colour, label=label, lw=1)


def _label_steps(axes: Any, labels: Sequence[str]) -> None:
    shown = [token_label(label) for label in labels]
    axes.set_xticks(range(len(shown)), shown, rotation=60, ha="right", parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)


def _attention_figure(path: Path, trace: LossGradientTrace, head: AttentionNorms) -> Any:
    """Draw the gradients of one attention head.

    Two heat maps show the gradients of the loss L at the weights α and the scores e, with a row per
    output token and a column per source token. Bars show the gradient norms at the context vector,
    the query and the keys of each step.
    """
    rows, columns = len(trace.output), len(trace.source)
    size = (max(1.0 * columns + 4.5, 9.0), max(0.36 * rows + 3.0, 4.5))
    figure = create_figure(path, (min(size[0], 30.0), min(size[1], 30.0)), "drawing gradients")
    widths = [columns, columns, max(0.6 * columns, 4)]
    [first, second, third] = figure.subplots(1, 3, width_ratios=widths)
    outputs = [token_label(piece) for piece in trace.output]
    sources = [token_label(piece) for piece in trace.source]
    for axes, (name, matrix) in zip((first, second), _matrices(head, False).items(), strict=True):
        largest = max(abs(value) for row in matrix for value in row) or 1.0
        image = axes.imshow(matrix, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
        axes.set_xticks(range(columns), sources, rotation=60, ha="right", parse_math=False)
        axes.set_yticks(range(rows), outputs, parse_math=False)
        axes.tick_params(length=0)
        axes.set_title(name, fontsize=11)
        figure.colorbar(image, ax=axes, shrink=0.8)
    norms = {"context a": head.context, "query q": head.queries, "keys k": _step_norms(head.keys)}
    for index, (name, values) in enumerate(norms.items()):
        heights = [row + 0.27 * (index - 1) for row in range(rows)]
        third.barh(heights, values, height=0.27, color=_COLOURS[index], label=name)
    third.set_yticks(range(rows), outputs, parse_math=False)
    third.invert_yaxis()
    if any(any(values) for values in norms.values()):
        third.set_xscale("log")
    third.set_title("norms per step", fontsize=11)
    third.spines[["top", "right"]].set_visible(False)
    third.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    label = f"layer {head.layer}, head {head.head}"
    figure.supxlabel(f"{label}. {_HARD_NOTE}" if head.is_hard else label, fontsize=9)
    return figure


def _weights_figure(path: Path, trace: LossGradientTrace) -> Any:
    """Draw the gradient norm of each parameter as a bar. Each parameter group has one colour."""
    count = len(trace.weights)
    figure = create_figure(
        path, (9.0, min(max(0.24 * count + 1.5, 3.0), 40.0)), "drawing gradients"
    )
    axes = figure.subplots()
    groups = list(trace.group_norms())
    colours = [_COLOURS[groups.index(each.group) % len(_COLOURS)] for each in trace.weights]
    norms = [each.norm for each in trace.weights]
    axes.barh(range(count), norms, color=colours)
    names = [each.name for each in trace.weights]
    axes.set_yticks(range(count), names, fontsize=8, parse_math=False)
    axes.invert_yaxis()
    if largest := max(norms):
        # The space on the right is for the names of the groups.
        axes.set_xscale("log")
        axes.set_xlim(largest / 10**_MAX_DECADES, largest * 10**2.5)
        for group in groups:
            first = [each.group for each in trace.weights].index(group)
            axes.text(norms[first] or largest, first, f"  {group}", fontsize=8, va="center")
    axes.set_xlabel("gradient norm")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.01)
    return figure
