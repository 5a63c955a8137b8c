"""Draw the tree of a traced search as SVG."""

from seqloom.analysis.search_inspection import InspectedSearch
from seqloom.decoding.trace import Fate
from seqloom.viz.diagrams.svg import BoxKind, Drawing, Svg, box_height, title_text, widest
from seqloom.viz.search_tree import (
    TreeNode,
    layout_search_tree,
    search_title,
)

_BOX_HEIGHT = box_height(2)
_ROW = _BOX_HEIGHT + 12
_GAP = 46
_TOP = 40.0


def draw_search_tree(searched: InspectedSearch, dropped_per_step: int = 2) -> Svg:
    """Draw the candidates of every step from left to right, with their log-probabilities.

    A box shows a token, its log-probability, and the sum of the log-probabilities of all tokens up
    to this one (Σ).
    Boxes of dropped candidates are dashed. The box of a finished output shows its rank and its score
    instead of the sum. Thick lines lead to the best output.

    dropped_per_step: maximum number of dropped candidates to draw at each step. Default: 2.
    """
    layout = layout_search_tree(searched, dropped_per_step)
    nodes = [node for step in layout.nodes for node in step]
    width = max(96.0, widest([line for node in nodes for line in _lines(node)]) + 14)
    top = min(layout.top, 0.0)

    def corner(step: int, row: float) -> tuple[float, float]:
        """Return x and y of the upper left corner of a box. Step 0 is the start of the search."""
        return step * (width + _GAP), _TOP + (row - top) * _ROW

    drawing = Drawing(title_text(search_title(searched)), _description(searched))
    drawing.box(*corner(0, 0.0), width, ["start"], "plain", _BOX_HEIGHT)
    for node in sorted(nodes, key=lambda node: node.wins):  # the best output is drawn last
        parent = layout.parent(node)
        x1, y1 = corner(node.step, parent.row if parent else 0.0)
        x2, y2 = corner(node.step + 1, node.row)
        start, end = (x1 + width, y1 + _BOX_HEIGHT / 2), (x2, y2 + _BOX_HEIGHT / 2)
        drawing.curve(start, end, strong=node.wins, width=4 if node.wins else 1.2)
    for node in nodes:
        x, y = corner(node.step + 1, node.row)
        drawing.box(x, y, width, _lines(node), _kind(node), _BOX_HEIGHT)
    return drawing.render()


def _kind(node: TreeNode) -> BoxKind:
    match node.candidate.fate:
        case Fate.DROPPED:
            return "muted"
        case Fate.FINISHED:
            return "result"
        case _:
            return "state"


def _lines(node: TreeNode) -> list[str]:
    candidate = node.candidate
    if candidate.fate is Fate.FINISHED:
        rank = f"#{node.rank} " if node.rank else ""
        return [
            f"{rank}{node.label} {candidate.log_probability:.1f}",
            f"score {candidate.score:.2f}",
        ]
    return [f"{node.label} {candidate.log_probability:.1f}", f"Σ {candidate.total:.1f}"]


def _description(searched: InspectedSearch) -> str:
    outputs = "; ".join(f"{output.text}, score {output.score:.2f}" for output in searched.outputs)
    return f"A search tree of {len(searched.record.steps)} steps. Outputs, best first: {outputs}."
