"""Draw the tree of a traced search.

`layout_search_tree` computes where each candidate is placed, for figures and for the web page. Steps run from left to right. The drawing shows every candidate that the search did not drop, and
the best few dropped candidates of each step. The other candidates are not drawn. Their number is
printed below the step.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.analysis.search_inspection import InspectedSearch
from seqloom.decoding.trace import NO_PARENT, Fate, TracedCandidate
from seqloom.viz.drawing import BoxKind, Drawing, Svg, box_height, widest
from seqloom.viz.terminal_format import fit_to_line, strip_word_marker

MAX_LABEL_LENGTH = 16
_BOX_HEIGHT = box_height(2)
_NOTE = 16
"""Distance of the note below a box from the box, in pixels."""
_ROW = _BOX_HEIGHT + _NOTE + 14
_GAP = 46
_TOP = 56.0
_MAX_TITLE_CELLS = 120
DROPPED_PER_STEP = 3
"""Default maximum number of dropped candidates drawn at each step."""


@dataclass(frozen=True)
class TreeNode:
    """A candidate in the drawing.

    Attributes:
        step: step of the candidate, counted from 0.
        index: index of the candidate among all candidates of its step.
        row: vertical position in rows. The root is at 0. Positive numbers are below the root,
            negative numbers are above it.
        wins: True if the candidate is part of the best output.
        rank: rank of the output that ends with this candidate; 1 for the best output, 0 if no
            output ends with this candidate.
    """

    step: int
    index: int
    label: str
    row: float
    candidate: TracedCandidate
    wins: bool
    rank: int


@dataclass(frozen=True)
class SearchTreeLayout:
    """The nodes of a search tree.

    Attributes:
        nodes: the nodes of each step, from top to bottom.
        hidden: for each step, the numbers of candidates that are not drawn, by the reason why the
            search dropped them.
    """

    nodes: tuple[tuple[TreeNode, ...], ...]
    hidden: tuple[Counter[str], ...]

    @property
    def top(self) -> float:
        return min((node.row for step in self.nodes for node in step), default=0.0)

    @property
    def bottom(self) -> float:
        return max((node.row for step in self.nodes for node in step), default=0.0)

    def parent(self, node: TreeNode) -> TreeNode | None:
        """Return the node of the previous token, or None if this node is at the first step."""
        parent = node.candidate.parent
        if parent == NO_PARENT:
            return None
        return next(each for each in self.nodes[node.step - 1] if each.index == parent)


def layout_search_tree(
    searched: InspectedSearch, dropped_per_step: int = DROPPED_PER_STEP
) -> SearchTreeLayout:
    """Compute the positions of all nodes of a search tree.

    The nodes of a step are in the same order as their parents. The best child of a node is placed
    in the row of its parent, and the other children in the rows below it. `spread_rows` moves nodes
    that would overlap.
    """
    record = searched.record
    paths = record.best()
    best_path = set(paths[0]) if paths else set()
    ranks = {path[-1]: rank for rank, path in enumerate(paths, start=1)}
    rows: dict[tuple[int, int], float] = {}  # row of a candidate, by its step and index
    nodes, hidden = [], []
    for number, step in enumerate(record.steps):
        drawn = candidates_to_draw(step, dropped_per_step)
        hidden.append(hidden_reasons(step, drawn))

        def parent_row(index: int, number: int = number) -> float:
            parent = record.steps[number][index].parent
            return 0.0 if parent == NO_PARENT else rows[number - 1, parent]

        drawn.sort(key=lambda index: (parent_row(index), -step[index].total))
        siblings_above = Counter[float]()
        desired_rows = []
        for index in drawn:  # the best child is in the row of its parent, others below
            row = parent_row(index)
            desired_rows.append(row + siblings_above[row])
            siblings_above[row] += 1
        placed = spread_rows(desired_rows)
        rows.update(((number, index), row) for index, row in zip(drawn, placed, strict=True))
        nodes.append(
            tuple(
                TreeNode(
                    step=number,
                    index=index,
                    label=shorten_piece(searched.pieces[step[index].token]),
                    row=rows[number, index],
                    candidate=step[index],
                    wins=(number, index) in best_path,
                    rank=ranks.get((number, index), 0),
                )
                for index in drawn
            )
        )
    return SearchTreeLayout(tuple(nodes), tuple(hidden))


def candidates_to_draw(step: Sequence[TracedCandidate], dropped: int) -> list[int]:
    """Return the indices of the candidates to draw at one step.

    These are all candidates that were not dropped, then the best of the dropped candidates.

    dropped: maximum number of dropped candidates to draw
    """
    survivors = [index for index, each in enumerate(step) if each.fate is not Fate.DROPPED]
    others = [index for index, each in enumerate(step) if each.fate is Fate.DROPPED]
    others.sort(key=lambda index: -step[index].total)
    return survivors + others[:dropped]


def hidden_reasons(step: Sequence[TracedCandidate], drawn: Sequence[int]) -> Counter[str]:
    """Count the candidates that are not drawn, grouped by the reason why they were dropped."""
    hidden = set(range(len(step))) - set(drawn)
    return Counter(str(step[index].reason) for index in sorted(hidden))


def spread_rows(desired: Sequence[float], gap: float = 1.0) -> list[float]:
    """Move rows apart until neighbours are at least `gap` apart.

    desired: desired position of each row, from top to bottom

    The order does not change, and rows stay as close to their desired positions as possible. Rows
    that would overlap form a group with the distance `gap` between neighbours. The mean position of
    the group is the mean of the desired positions of its rows.
    """
    # The start of a row is its desired position minus `gap` times its index. For each group: the
    # mean start of its rows, and the number of its rows.
    groups: list[tuple[float, int]] = []
    for index, row in enumerate(desired):
        start, size = row - gap * index, 1
        while groups and groups[-1][0] >= start:
            above, count = groups.pop()
            start, size = (above * count + start * size) / (count + size), count + size
        groups.append((start, size))
    starts = [start for start, size in groups for _ in range(size)]
    return [start + gap * index for index, start in enumerate(starts)]


def shorten_piece(piece: str) -> str:
    """Return a piece without SentencePiece's leading "▁", cut to at most 16 characters."""
    label = strip_word_marker(piece)
    return label if len(label) <= MAX_LABEL_LENGTH else f"{label[: MAX_LABEL_LENGTH - 1]}…"


def format_probability(log_probability: float) -> str:
    """Format a probability in three or four characters: .07, 1.0, <.01."""
    probability = math.exp(log_probability)
    if probability < 0.005:
        return "<.01"
    return f"{probability:.2f}".removeprefix("0") if probability < 0.995 else "1.0"


def search_title(searched: InspectedSearch) -> str:
    """Return a title such as "source text  ·  beam of 4".

    If there is no source text, the title is only the kind of search.
    """
    record = searched.record
    names = {"beam": f"beam of {record.width}", "sample": f"{record.width} samples"}
    kind = names.get(record.kind, f"{record.kind} search")
    return f"{searched.text}  ·  {kind}" if searched.text.strip() else kind


def search_tree_data(searched: InspectedSearch) -> dict[str, Any]:
    """Return the data from which search-tree.js draws the tree and lists the candidates.

    The HTTP route /api/search/tree returns the same object, so its keys are part of the API.
    """
    layout = layout_search_tree(searched)
    return {
        "top": layout.top,
        "bottom": layout.bottom,
        "spots": [[_node_data(searched, layout, node) for node in step] for step in layout.nodes],
        "left_out": [
            [f"{count} more {reason}" for reason, count in reasons.most_common()]
            for reasons in layout.hidden
        ],
        "steps": [
            [
                _candidate_data(searched, candidate) | {"text": text}
                for candidate, text in zip(candidates, texts, strict=True)
            ]
            for candidates, texts in zip(searched.record.steps, searched.written, strict=True)
        ],
    }


def _node_data(
    searched: InspectedSearch, layout: SearchTreeLayout, node: TreeNode
) -> dict[str, Any]:
    parent, candidate = layout.parent(node), node.candidate
    record = searched.record
    return {
        "label": node.label,
        "row": node.row,
        "from": parent.row if parent else 0.0,
        "p": format_probability(candidate.log_probability),
        "log": candidate.log_probability,
        "total": candidate.total,
        "score": candidate.score,
        "fate": candidate.fate,
        "reason": candidate.reason,
        "tokens": [record.candidate(at).token for at in record.path((node.step, node.index))],
        "wins": node.wins,
        "rank": node.rank,
    }


def _candidate_data(searched: InspectedSearch, candidate: TracedCandidate) -> dict[str, Any]:
    return {
        "piece": shorten_piece(searched.pieces[candidate.token]),
        "p": format_probability(candidate.log_probability),
        "total": candidate.total,
        "score": candidate.score,
        "fate": candidate.fate,
        "reason": candidate.reason,
    }


def draw_search_tree(searched: InspectedSearch, dropped_per_step: int = 2) -> Svg:
    """Draw the candidates of every step from left to right, with their log-probabilities.

    A box shows a token, its log-probability, and the sum of the log-probabilities of all tokens up
    to this one (Σ). The box of a finished output shows its rank and its score instead of the sum.
    Boxes of dropped candidates are dashed. Below a box is the probability of the token, and the
    reason if the search dropped the candidate or stopped it before END. Wider lines lead to more
    probable tokens. Dark lines lead to the best output.

    dropped_per_step: maximum number of dropped candidates to draw at each step. Default: 2.
    """
    layout = layout_search_tree(searched, dropped_per_step)
    nodes = [node for step in layout.nodes for node in step]
    width = max(96.0, widest([line for node in nodes for line in _lines(node)]) + 14)
    pitch = max(width + _GAP, widest([_note(node) for node in nodes]) + 8)
    top = min(layout.top, 0.0)

    def corner(step: int, row: float) -> tuple[float, float]:
        """Return x and y of the upper left corner of a box. Step 0 is the start of the search."""
        return step * pitch, _TOP + (row - top) * _ROW

    title = fit_to_line(search_title(searched), _MAX_TITLE_CELLS)
    drawing = Drawing(title, _description(searched))
    drawing.box(*corner(0, 0.0), width, ["start"], "plain", _BOX_HEIGHT)
    for node in sorted(nodes, key=lambda node: node.wins):  # the best output is drawn last
        parent = layout.parent(node)
        x1, y1 = corner(node.step, parent.row if parent else 0.0)
        x2, y2 = corner(node.step + 1, node.row)
        is_dropped = node.candidate.fate is Fate.DROPPED
        line_width = 1.0 if is_dropped else 1.2 + 4 * math.exp(node.candidate.log_probability)
        style = "edge" if node.wins else "dropped" if is_dropped else "branch"
        start, end = (x1 + width, y1 + _BOX_HEIGHT / 2), (x2, y2 + _BOX_HEIGHT / 2)
        drawing.curve(start, end, style, line_width)
    for node in nodes:
        x, y = corner(node.step + 1, node.row)
        drawing.box(x, y, width, _lines(node), _BOX_KINDS[node.candidate.fate], _BOX_HEIGHT)
        drawing.text(x + width / 2, y + _BOX_HEIGHT + 10, _note(node), style="soft")
    bottom = corner(0, layout.bottom)[1] + _ROW
    for step, reasons in enumerate(layout.hidden, start=1):
        x = corner(step, 0)[0] + width / 2
        drawing.text(x, 34, str(step), style="soft")
        for line, (reason, count) in enumerate(reasons.most_common()):
            drawing.text(x, bottom + 8 + _NOTE * line, f"{count} more {reason}", style="soft")
    return drawing.render()


_BOX_KINDS: dict[Fate, BoxKind] = {
    Fate.KEPT: "state",
    Fate.FINISHED: "result",
    Fate.STOPPED: "stopped",
    Fate.DROPPED: "muted",
}


def _lines(node: TreeNode) -> list[str]:
    candidate = node.candidate
    if candidate.fate is Fate.FINISHED:
        rank = f"#{node.rank} " if node.rank else ""
        return [
            f"{rank}{node.label} {candidate.log_probability:.1f}",
            f"score {candidate.score:.2f}",
        ]
    return [f"{node.label} {candidate.log_probability:.1f}", f"Σ {candidate.total:.1f}"]


def _note(node: TreeNode) -> str:
    candidate = node.candidate
    score = f"  score {candidate.score:.2f}" if candidate.fate is Fate.STOPPED else ""
    reason = f"  {candidate.reason}" if candidate.reason else ""
    return f"{format_probability(candidate.log_probability)}{score}{reason}"


def _description(searched: InspectedSearch) -> str:
    outputs = "; ".join(f"{output.text}, score {output.score:.2f}" for output in searched.outputs)
    return f"A search tree of {len(searched.record.steps)} steps. Outputs, best first: {outputs}."
