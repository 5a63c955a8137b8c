"""Draw a few curves in an image file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.viz.figures import create_figure, save_figure

_CURVE_COLOURS = ("#08306b", "#d97706", "#4292c6", "#7c3aed")
_TEXT_COLOUR, _GRID_COLOUR = "#6b7280", "#e5e7eb"


@dataclass(frozen=True)
class Curve:
    """A curve with a name, given by its points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class LinePlot:
    """Curves with common axes.

    Attributes:
        vertical_line: x position of a dotted line. Default: no line.
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    vertical_line: float | None = None


def save_line_plots(path: Path, *plots: LinePlot) -> None:
    """Draw the plots side by side. The suffix of `path` selects the image format."""
    figure = create_figure(path, (6.4 * len(plots), 4.0), "drawing curves")
    for position, plot in enumerate(plots, start=1):
        _draw_plot(figure.add_subplot(1, len(plots), position), plot)
    save_figure(path, figure)


def _draw_plot(axes: Any, plot: LinePlot) -> None:
    assert len(plot.curves) <= len(_CURVE_COLOURS)
    for curve, colour in zip(plot.curves, _CURVE_COLOURS, strict=False):
        xs, ys = [x for x, _ in curve.points], [y for _, y in curve.points]
        axes.plot(xs, ys, label=curve.name, color=colour, linewidth=2, marker="o", markersize=4)
    if plot.vertical_line is not None:
        axes.axvline(plot.vertical_line, color=_TEXT_COLOUR, linewidth=0.8, linestyle=":")
    axes.set_title(plot.title, loc="left", fontsize=11, parse_math=False)
    axes.set_xlabel(plot.x_label, color=_TEXT_COLOUR)
    axes.set_ylabel(plot.y_label, color=_TEXT_COLOUR)
    axes.grid(color=_GRID_COLOUR, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=_TEXT_COLOUR)
    axes.xaxis.get_major_locator().set_params(integer=True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    if len(plot.curves) > 1:
        axes.legend(frameon=False, fontsize=9)
