"""A few curves as a picture in a file."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.core.extras import import_optional
from seqloom.core.storage import write_file
from seqloom.viz.attention import picture_format

_HUES = ("#08306b", "#d97706", "#4292c6", "#7c3aed")
_SOFT, _GRID = "#6b7280", "#e5e7eb"


@dataclass(frozen=True)
class Curve:
    """A name and its points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """Curves over a common axis; mark: where an upright line stands, None: nowhere."""

    title: str
    across: str
    upright: str
    curves: Sequence[Curve]
    mark: float | None = None


def save_plot(path: Path, *plots: Plot) -> None:
    """One or several plots side by side; the suffix is the format."""
    kind = picture_format(path)
    figures = import_optional("matplotlib.figure", "plots", "drawing curves")
    figure = figures.Figure(figsize=(6.4 * len(plots), 4.0), layout="constrained")
    for place, plot in enumerate(plots, start=1):
        _draw(figure.add_subplot(1, len(plots), place), plot)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=160)
    write_file(path, buffer.getvalue())


def _draw(pen: Any, plot: Plot) -> None:
    assert len(plot.curves) <= len(_HUES)
    for curve, hue in zip(plot.curves, _HUES, strict=False):
        across, upright = [x for x, _ in curve.points], [y for _, y in curve.points]
        look = {"color": hue, "linewidth": 2, "marker": "o", "markersize": 4}
        pen.plot(across, upright, label=curve.name, **look)
    if plot.mark is not None:
        pen.axvline(plot.mark, color=_SOFT, linewidth=0.8, linestyle=":")
    pen.set_title(plot.title, loc="left", fontsize=11, parse_math=False)
    pen.set_xlabel(plot.across, color=_SOFT)
    pen.set_ylabel(plot.upright, color=_SOFT)
    pen.grid(color=_GRID, linewidth=0.8)
    pen.set_axisbelow(True)
    pen.tick_params(length=0, labelcolor=_SOFT)
    pen.xaxis.get_major_locator().set_params(integer=True)
    for side in ("top", "right", "left", "bottom"):
        pen.spines[side].set_visible(False)
    if len(plot.curves) > 1:
        pen.legend(frameon=False, fontsize=9)
