"""A recorded search as one page for a browser: a file that needs nothing but itself.

The tree grows step by step, by itself or under the hand; beside it stand all candidates of the
step. Without scripts the outputs are still there.
"""

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from seqloom.core.storage import write_file
from seqloom.decoding.record import Candidate
from seqloom.runs.question import Searched
from seqloom.viz.tree_layout import Layout, Spot, lay_out, share, short, tree_title

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
<div class="controls" role="group" aria-label="steps">
<button id="play" aria-label="play or pause">▶</button>
<input id="scrub" type="range" min="0" max="{steps}" value="{steps}" step="1" aria-label="step">
<output id="where" for="scrub"></output>
<span class="keys"><kbd>←</kbd> <kbd>→</kbd> step · <kbd>space</kbd> play · <kbd>Home</kbd> <kbd>End</kbd></span>
</div>
<div id="tree" tabindex="0" role="region" aria-label="the tree of the search"></div>
<ul class="legend">
<li><i class="kept"></i>kept</li><li><i class="finished"></i>finished</li>
<li><i class="stopped"></i>stopped: its source was done</li><li><i class="dropped"></i>dropped</li>
<li><i class="wins"></i>the best output</li><li>the wider a line, the likelier the token</li>
</ul>
<div class="sides">
<section><h2 id="chosen">candidates</h2><div id="candidates" tabindex="0" role="region"
aria-labelledby="chosen"></div></section>
<section><h2>outputs</h2><table><thead><tr><th></th><th>score</th><th>log p</th><th>text</th></tr></thead>
<tbody>{outputs}</tbody></table></section>
</div>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


def save_tree_page(path: Path, searched: Searched) -> None:
    """Write the page."""
    data = tree_data(searched)
    here = files("seqloom.viz")
    page = _PAGE.format(
        title=escape(tree_title(searched)),
        style=(here / "tree.css").read_text(encoding="utf-8"),
        script=(here / "tree.js").read_text(encoding="utf-8"),
        steps=len(data["spots"]),
        outputs=_outputs(searched),
        # A text may say </script>; in JSON the slash may be written apart from it.
        data=json.dumps(data, ensure_ascii=False).replace("</", "<\\/"),
    )
    write_file(path, page.encode())


def _outputs(searched: Searched) -> str:
    rows = []
    for rank, one in enumerate(searched.outputs, start=1):
        note = "" if one.finished else ' <small class="note">without END</small>'
        numbers = f"<td>{one.score:.3f}</td><td>{sum(one.log_probabilities):.2f}</td>"
        text = f'<td dir="auto">{escape(one.text)}{note}</td>'
        rows.append(f"<tr><td>{rank}</td>{numbers}{text}</tr>")
    return "\n".join(rows)


def tree_data(searched: Searched) -> dict[str, Any]:
    """All that a script needs to draw the tree and to list its candidates."""
    layout = lay_out(searched)
    return {
        "top": layout.top,
        "bottom": layout.bottom,
        "spots": [[_spot(layout, spot) for spot in step] for step in layout.spots],
        "left_out": [
            [f"{count} more {reason}" for reason, count in several.most_common()]
            for several in layout.left_out
        ],
        "steps": [
            [_candidate(searched, one) | {"text": text} for one, text in zip(*both, strict=True)]
            for both in zip(searched.record.steps, searched.written, strict=True)
        ],
    }


def _spot(layout: Layout, spot: Spot) -> dict[str, Any]:
    parent, one = layout.parent(spot), spot.candidate
    return {
        "label": spot.label,
        "row": spot.row,
        "from": parent.row if parent else 0.0,
        "p": share(one.log_probability),
        "log": one.log_probability,
        "score": one.score,
        "fate": one.fate,
        "reason": one.reason,
        "wins": spot.wins,
        "rank": spot.rank,
    }


def _candidate(searched: Searched, one: Candidate) -> dict[str, Any]:
    return {
        "piece": short(searched.pieces[one.token]),
        "p": share(one.log_probability),
        "total": one.total,
        "score": one.score,
        "fate": one.fate,
        "reason": one.reason,
    }
