"""Write a traced search as a self-contained HTML page.

The page plays the search step by step and lists all candidates of the current step. Without
JavaScript it still shows the outputs.
"""

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from seqloom.analysis.search_inspection import InspectedSearch
from seqloom.core.storage import write_file
from seqloom.decoding.trace import TracedCandidate
from seqloom.viz.search_trees.search_tree_layout import (
    SearchTreeLayout,
    TreeNode,
    format_probability,
    layout_search_tree,
    search_title,
    shorten_piece,
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<h1 dir="auto">{title}</h1>
<div class="controls" role="group" aria-label="Steps">
<button id="play" aria-label="Play or pause">▶</button>
<input id="step" type="range" min="0" max="{steps}" value="{steps}" step="1" aria-label="Step">
<output id="step-label" for="step"></output>
<span class="keys"><kbd>←</kbd> <kbd>→</kbd> step · <kbd>space</kbd> play · <kbd>Home</kbd> <kbd>End</kbd></span>
</div>
<div id="tree" tabindex="0" role="region" aria-label="Search tree"></div>
<ul class="legend">
<li><i class="kept"></i>kept</li><li><i class="finished"></i>finished</li>
<li><i class="stopped"></i>stopped: the search had ended</li><li><i class="dropped"></i>dropped</li>
<li><i class="wins"></i>best output</li><li>line width: probability of the token</li>
</ul>
<div class="columns">
<section><h2 id="candidates-title">Candidates</h2><div id="candidates" tabindex="0" role="region"
aria-labelledby="candidates-title"></div></section>
<section><h2>Outputs</h2><table><thead><tr><th></th><th>score</th><th>log p</th><th>text</th></tr></thead>
<tbody>{outputs}</tbody></table></section>
</div>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


def save_search_tree_page(path: Path, searched: InspectedSearch) -> None:
    """Write a traced search as an HTML page to `path`."""
    data = search_tree_data(searched)
    assets = files("seqloom.viz") / "assets"
    page = _PAGE.format(
        title=escape(search_title(searched)),
        style=(assets / "search_tree.css").read_text(encoding="utf-8"),
        script=(assets / "search_tree.js").read_text(encoding="utf-8"),
        steps=len(data["spots"]),
        outputs=_output_rows(searched),
        # A text can contain "</script>". JSON allows an escaped slash.
        data=json.dumps(data, ensure_ascii=False).replace("</", "<\\/"),
    )
    write_file(path, page.encode())


def _output_rows(searched: InspectedSearch) -> str:
    rows = []
    for rank, output in enumerate(searched.outputs, start=1):
        note = "" if output.finished else ' <small class="note">without END</small>'
        numbers = f"<td>{output.score:.3f}</td><td>{sum(output.log_probabilities):.2f}</td>"
        text = f'<td dir="auto">{escape(output.text)}{note}</td>'
        rows.append(f"<tr><td>{rank}</td>{numbers}{text}</tr>")
    return "\n".join(rows)


def search_tree_data(searched: InspectedSearch) -> dict[str, Any]:
    """Return the data from which search_tree.js draws the tree and lists the candidates.

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
