"""The tree of a recorded search as a picture in a file."""

import io
import math
import warnings
from pathlib import Path
from typing import Any

from seqloom.core.extras import import_optional
from seqloom.core.storage import write_file
from seqloom.decoding.record import Fate
from seqloom.runs.question import Searched
from seqloom.viz.attention import picture_format
from seqloom.viz.tree_layout import Layout, Spot, lay_out, share, tree_title

_COLUMN, _ROW = 1.5, 0.42
"""Inches from step to step, and from label to label."""
_MARGIN = 0.9
_INK, _PALE, _LINE, _LOST = "#08306b", "#deebf7", "#6baed6", "#9a9a9a"


def save_tree(path: Path, searched: Searched) -> None:
    """Draw every step of a search; the suffix is the format."""
    kind = picture_format(path)
    figures = import_optional("matplotlib.figure", "plots", "drawing a search")
    layout = lay_out(searched)
    steps = len(layout.spots)
    notes = max((len(several) for several in layout.left_out), default=0)
    top, bottom = layout.top - 1.3, layout.bottom + 1.0 + 0.45 * notes
    size = (_COLUMN * (steps + 1.2), _ROW * (bottom - top) + _MARGIN)
    figure = figures.Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlim(-0.4, steps + 0.8)
    axes.set_ylim(bottom, top)
    axes.axis("off")
    axes.set_title(tree_title(searched), loc="left", color=_INK, fontsize=12, parse_math=False)
    _label(axes, (0, 0.0), "start", _INK)
    for number, several in enumerate(layout.left_out, start=1):
        axes.text(number, top + 0.3, f"{number}", ha="center", color=_LOST, fontsize=8)
        for line, (reason, count) in enumerate(several.most_common()):
            where = layout.bottom + 1.0 + 0.45 * line
            words = f"{count} more {reason}"
            axes.text(number, where, words, ha="center", va="center", color=_LOST, fontsize=6.5)
    for spot in sorted(
        (spot for step in layout.spots for spot in step), key=lambda spot: spot.wins
    ):
        _edge(axes, layout, spot)
        _spot(axes, spot)
    write_file(path, _rendered(figure, kind))


def _edge(axes: Any, layout: Layout, spot: Spot) -> None:
    """From the middle of the parent to the middle of the child; the likelier, the wider."""
    parent = layout.parent(spot)
    step = spot.place[0] + 1
    width = 0.6 + 3.4 * math.exp(spot.candidate.log_probability)
    lost = spot.candidate.fate is Fate.DROPPED
    colour = _INK if spot.wins else "#d0d0d0" if lost else _LINE
    left, right = step - 0.6, step - 0.4
    rows = [parent.row if parent else 0.0, spot.row]
    paths, patches = (
        import_optional(f"matplotlib.{name}", "plots", "drawing a search")
        for name in ("path", "patches")
    )
    code = paths.Path
    curve = code(
        [(step - 1, rows[0]), (left, rows[0]), (right, rows[1]), (step, rows[1])],
        [code.MOVETO, code.CURVE4, code.CURVE4, code.CURVE4],
    )
    axes.add_patch(
        patches.PathPatch(
            curve, fill=False, edgecolor=colour, linewidth=0.6 if lost else width, zorder=1
        )
    )


def _spot(axes: Any, spot: Spot) -> None:
    """The token in a box, its probability beside it, and why it goes no further."""
    one, step = spot.candidate, spot.place[0] + 1
    probability = share(one.log_probability)
    if one.fate is Fate.DROPPED:
        _label(axes, (step, spot.row), spot.label, _LOST)
        _note(axes, spot, f"{probability}  {one.reason}")
        return
    saved = one.fate is not Fate.KEPT
    box = {
        "boxstyle": "round,pad=0.28",
        "facecolor": _INK if one.fate is Fate.FINISHED else _PALE,
        "edgecolor": _INK if spot.wins else _LINE,
        "linewidth": 1.6 if spot.wins else 0.8,
        "linestyle": "--" if one.fate is Fate.STOPPED else "-",
    }
    colour = "white" if one.fate is Fate.FINISHED else _INK
    _label(axes, (step, spot.row), spot.label, colour, box, bold=spot.wins)
    rank = f"   #{spot.rank}" if spot.rank else ""
    score = f"{rank}  score {one.score:.2f}" if saved else ""
    reason = f"  {one.reason}" if one.reason else ""
    _note(axes, spot, f"{probability}{score}{reason}", bold=spot.rank == 1)


def _label(
    axes: Any,
    place: tuple[float, float],
    words: str,
    colour: str,
    box: Any = None,
    bold: bool = False,
) -> None:
    axes.text(
        *place,
        words,
        ha="center",
        va="center",
        fontsize=9,
        color=colour,
        fontweight="bold" if bold else "normal",
        bbox=box or {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        zorder=3,
        parse_math=False,
    )


def _note(axes: Any, spot: Spot, words: str, bold: bool = False) -> None:
    axes.text(
        spot.place[0] + 1,
        spot.row + 0.5,
        words,
        ha="center",
        va="center",
        fontsize=6.5,
        color=_INK if spot.candidate.fate is not Fate.DROPPED else _LOST,
        fontweight="bold" if bold else "normal",
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        zorder=2,
    )


def _rendered(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A font without some script draws boxes for it: still a picture, no reason to stop.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format=kind, dpi=160)
    return buffer.getvalue()
