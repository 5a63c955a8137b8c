"""Draw the tree of a traced search in an image file."""

import math
from pathlib import Path
from typing import Any

from seqloom.analysis.search_inspection import InspectedSearch
from seqloom.core.extras import import_optional
from seqloom.decoding.trace import Fate
from seqloom.viz.figures import create_figure, image_format, save_figure
from seqloom.viz.search_tree import (
    SearchTreeLayout,
    TreeNode,
    format_probability,
    layout_search_tree,
    search_title,
)

_PURPOSE = "drawing a search tree"
_COLUMN_INCHES, _ROW_INCHES = 1.5, 0.42
_MARGIN_INCHES = 0.9
_DARK_BLUE, _PALE_BLUE, _BLUE, _GREY, _PALE_GREY = (
    "#08306b",
    "#deebf7",
    "#6baed6",
    "#9a9a9a",
    "#d0d0d0",
)


def save_search_tree(path: Path, searched: InspectedSearch) -> None:
    """Draw every step of a search. The suffix of `path` selects the image format."""
    image_format(path)
    layout = layout_search_tree(searched)
    steps = len(layout.nodes)
    note_lines = max((len(reasons) for reasons in layout.hidden), default=0)
    top, bottom = layout.top - 1.3, layout.bottom + 1.0 + 0.45 * note_lines
    size = (_COLUMN_INCHES * (steps + 1.2), _ROW_INCHES * (bottom - top) + _MARGIN_INCHES)
    figure = create_figure(path, size, _PURPOSE)
    axes = figure.add_subplot()
    axes.set_xlim(-0.4, steps + 0.8)
    axes.set_ylim(bottom, top)
    axes.axis("off")
    axes.set_title(
        search_title(searched), loc="left", color=_DARK_BLUE, fontsize=12, parse_math=False
    )
    _draw_label(axes, (0, 0.0), "start", _DARK_BLUE)
    for number, reasons in enumerate(layout.hidden, start=1):
        axes.text(number, top + 0.3, f"{number}", ha="center", color=_GREY, fontsize=8)
        for line, (reason, count) in enumerate(reasons.most_common()):
            y = layout.bottom + 1.0 + 0.45 * line
            note = f"{count} more {reason}"
            axes.text(number, y, note, ha="center", va="center", color=_GREY, fontsize=6.5)
    # The best output is drawn last, over the other edges.
    for node in sorted(
        (node for step in layout.nodes for node in step), key=lambda node: node.wins
    ):
        _draw_edge(axes, layout, node)
        _draw_node(axes, node)
    save_figure(path, figure)


def _draw_edge(axes: Any, layout: SearchTreeLayout, node: TreeNode) -> None:
    """Draw a curve from the parent to the node.

    The curve is wider for a more probable token. Curves of dropped candidates are always thin.
    """
    parent = layout.parent(node)
    step = node.step + 1
    is_dropped = node.candidate.fate is Fate.DROPPED
    width = 0.6 + (0 if is_dropped else 3.4 * math.exp(node.candidate.log_probability))
    colour = _DARK_BLUE if node.wins else _PALE_GREY if is_dropped else _BLUE
    start_row, end_row = parent.row if parent else 0.0, node.row
    path_class = import_optional("matplotlib.path", "plots", _PURPOSE).Path
    patches = import_optional("matplotlib.patches", "plots", _PURPOSE)
    curve = path_class(
        [(step - 1, start_row), (step - 0.6, start_row), (step - 0.4, end_row), (step, end_row)],
        [path_class.MOVETO, path_class.CURVE4, path_class.CURVE4, path_class.CURVE4],
    )
    axes.add_patch(
        patches.PathPatch(curve, fill=False, edgecolor=colour, linewidth=width, zorder=1)
    )


def _draw_node(axes: Any, node: TreeNode) -> None:
    """Draw the token of a node, and a note below the token.

    The note contains the probability of the token. If the search dropped the candidate or stopped
    it before END, the note also contains the reason. If the search saved the candidate as an
    output, the note also contains the score and the rank. Tokens of dropped candidates have no box.
    """
    candidate, step = node.candidate, node.step + 1
    probability = format_probability(candidate.log_probability)
    if candidate.fate is Fate.DROPPED:
        _draw_label(axes, (step, node.row), node.label, _GREY)
        _draw_note(axes, node, f"{probability}  {candidate.reason}")
        return
    box = {
        "boxstyle": "round,pad=0.28",
        "facecolor": _DARK_BLUE if candidate.fate is Fate.FINISHED else _PALE_BLUE,
        "edgecolor": _DARK_BLUE if node.wins else _BLUE,
        "linewidth": 1.6 if node.wins else 0.8,
        "linestyle": "--" if candidate.fate is Fate.STOPPED else "-",
    }
    colour = "white" if candidate.fate is Fate.FINISHED else _DARK_BLUE
    _draw_label(axes, (step, node.row), node.label, colour, box, bold=node.wins)
    rank = f"   #{node.rank}" if node.rank else ""
    score = "" if candidate.fate is Fate.KEPT else f"{rank}  score {candidate.score:.2f}"
    reason = f"  {candidate.reason}" if candidate.reason else ""
    _draw_note(axes, node, f"{probability}{score}{reason}", bold=node.rank == 1)


def _draw_label(
    axes: Any,
    position: tuple[float, float],
    label: str,
    colour: str,
    box: Any = None,
    bold: bool = False,
) -> None:
    axes.text(
        *position,
        label,
        ha="center",
        va="center",
        fontsize=9,
        color=colour,
        fontweight="bold" if bold else "normal",
        bbox=box or {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        zorder=3,
        parse_math=False,
    )


def _draw_note(axes: Any, node: TreeNode, note: str, bold: bool = False) -> None:
    axes.text(
        node.step + 1,
        node.row + 0.5,
        note,
        ha="center",
        va="center",
        fontsize=6.5,
        color=_DARK_BLUE if node.candidate.fate is not Fate.DROPPED else _GREY,
        fontweight="bold" if bold else "normal",
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        zorder=2,
    )
