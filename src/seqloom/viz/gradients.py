"""Draw gradient norms as a table in a terminal or as a figure in a file.

The norms belong to the steps of the encoder (one step per source token) and of the decoder (one
step per decoder input).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from seqloom.analysis.gradients import (
    GradientProfile,
    GradientTrace,
    LossGradientTrace,
    StepGradients,
)
from seqloom.viz.figures import create_figure, save_figure
from seqloom.viz.terminal_format import (
    fit_to_line,
    format_column,
    pad_to_width,
    strip_word_marker,
)

_BAR_CELLS = 36
_MAX_TOKEN_CELLS = 18
_STYLES = ("blue", "cyan")
_COLOURS = ("#2171b5", "#9ecae1")
_TOTAL_COLOUR = "#08306b"
_BAR_MARKS, _ASCII_BAR_MARKS = "█▒", "#:"
SIDES = {"source": "source", "target": "decoder input"}
COLUMNS = {
    "chain": "state",
    "attention": "attention",
    "own": "own step",
    "later": "later steps",
    "whole": "total",
}
"""Column headers of the terminal table."""
LEGENDS = {
    "chain": "via the encoder's final state",
    "attention": "via attention",
    "own": "from its own step",
    "later": "from later steps",
    "whole": "total",
}
"""Legend entries of the figure."""


def draw_gradients(gradients: GradientTrace | GradientProfile, *, ascii_only: bool = False) -> Text:
    """Draw the gradient norm at each encoder step and decoder step as text.

    The text has one table for the source and one for the decoder input, with numbers and bars.
    """
    drawing = Text()
    drawing.append(f"{headline(gradients)}\n", "bold")
    for name, title in SIDES.items():
        steps: StepGradients = getattr(gradients, name)
        if steps.labels and any(steps.whole):
            counts = gradients.counts[name] if isinstance(gradients, GradientProfile) else ()
            drawing.append(f"\n{title}\n", "bold blue")
            drawing.append(_table(steps, counts, ascii_only))
    return drawing


def headline(gradients: GradientTrace | GradientProfile | LossGradientTrace) -> str:
    """Return a headline that says which loss was differentiated."""
    loss = "of all steps" if gradients.step is None else f"at step {gradients.step}"
    if isinstance(gradients, GradientProfile):
        return f"gradients of the loss {loss}, mean over {gradients.sentences:,} sentences"
    token = ""
    if gradients.step is not None:
        token = f" ({strip_word_marker(gradients.output[gradients.step - 1])})"
    return f"gradients of the loss {loss}{token}, loss {gradients.loss:.3f}"


def _table(steps: StepGradients, counts: Sequence[int], ascii_only: bool) -> Text:
    """Draw a table of gradient norms with a line for each encoder or decoder step.

    counts: for each step, the number of sentences over which the norms are averaged. Empty if the
            norms belong to a single sentence
    """
    labels = [token_label(label, ascii_only) for label in steps.labels]
    if counts:
        labels = [f"{label} from the end" if label != "0" else "last" for label in labels]
    margin = max(map(cell_len, labels))
    entries = {
        COLUMNS[name]: format_column(values)
        for name, values in {**steps.parts, "whole": steps.whole}.items()
    }
    if counts:
        entries["sentences"] = [str(count) for count in counts]
    widths = {name: max(len(name), *map(len, values)) for name, values in entries.items()}
    drawing = Text("  " + " " * margin)
    for column, name in enumerate(entries):
        style = _STYLES[column] if column < len(steps.parts) else "dim"
        drawing.append("   " + name.rjust(widths[name]), style)
    drawing.append("\n")
    bars = _stacked_bars(steps, ascii_only)
    for row, label in enumerate(labels):
        drawing.append("  " + pad_to_width(label, margin))
        for name, values in entries.items():
            drawing.append("   " + values[row].rjust(widths[name]))
        drawing.append("  ")
        drawing.append(bars[row])
        drawing.rstrip()
        drawing.append("\n")
    return drawing


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
            bar.append(mark * round(norm / longest * _BAR_CELLS), style)
        bars.append(bar)
    return bars


def token_label(piece: str, ascii_only: bool = False) -> str:
    return fit_to_line(strip_word_marker(piece), _MAX_TOKEN_CELLS, ascii_only)


def save_gradients(path: Path, gradients: GradientTrace | GradientProfile) -> None:
    """Draw the gradient norms of source and decoder input side by side in an image file.

    The suffix of `path` selects the image format.
    """
    sides = [name for name in SIDES if any(getattr(gradients, name).whole)]
    sizes = [max(len(getattr(gradients, name).labels), 6) for name in sides]
    width = min(max(0.42 * sum(sizes) + 2.5, 7.0), 24.0)
    figure = create_figure(path, (width, 4.2), "drawing gradients")
    grid = figure.subplots(1, len(sides), squeeze=False, width_ratios=sizes)[0]
    for axes, name in zip(grid, sides, strict=True):
        if isinstance(gradients, GradientProfile):
            _draw_curves(axes, getattr(gradients, name))
        else:
            _draw_bars(axes, getattr(gradients, name))
        axes.set_title(SIDES[name], fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        # Below the panel: inside, the legend would cover bars.
        axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.3))
    grid[0].set_ylabel("gradient norm")
    figure.suptitle(headline(gradients), fontsize=12, parse_math=False)
    save_figure(path, figure)


def _draw_bars(axes: Any, steps: StepGradients) -> None:
    """Draw two bars and a mark for each encoder or decoder step.

    The gradient at a step is the sum of two parts, for example one that flows through attention and
    one that does not. The bars show the norms of the parts, the mark the norm of the sum.
    """
    positions = range(len(steps.labels))
    for index, (name, colour) in enumerate(zip(steps.parts, _COLOURS, strict=True)):
        shifted = [position + 0.4 * (index - 0.5) for position in positions]
        axes.bar(shifted, steps.parts[name], width=0.4, color=colour, label=LEGENDS[name])
    axes.plot(
        positions, steps.whole, "_", color=_TOTAL_COLOUR, markersize=14, label=LEGENDS["whole"]
    )
    labels = [token_label(label) for label in steps.labels]
    axes.set_xticks(list(positions), labels, rotation=60, ha="right", parse_math=False)
    axes.tick_params(axis="x", length=0)


def _draw_curves(axes: Any, steps: StepGradients) -> None:
    """Draw curves of gradient norms that are averaged over sentences.

    The x axis is the distance of a step from the last step of its sentence.
    """
    positions = range(len(steps.labels))
    for name, colour in zip(steps.parts, _COLOURS, strict=True):
        if any(steps.parts[name]):
            axes.plot(positions, steps.parts[name], "o-", color=colour, label=LEGENDS[name], ms=4)
    axes.plot(positions, steps.whole, "-", color=_TOTAL_COLOUR, label=LEGENDS["whole"], lw=1)
    axes.set_yscale("log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("steps from the end")
