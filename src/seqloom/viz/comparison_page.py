"""Two runs as one page for a browser: both outputs of each sentence, and where each looked.

The page needs nothing but itself, and no script.
"""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from seqloom.core.storage import write_file
from seqloom.metrics.sentences import word_difference
from seqloom.runs.comparing import Comparison, Pair
from seqloom.runs.prediction import Prediction
from seqloom.viz.tree_layout import short

_CELL, _LETTER = 22, 7.2
"""Pixels from piece to piece, and of a letter of a label, about."""

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
<h1>{title}</h1>
<p class="soft">{summary}</p>
{scores}
{pairs}
</body>
</html>
"""


def save_comparison(path: Path, found: Comparison, shown: int) -> None:
    """Write the page, with so many sentences, those that differ most first."""
    chosen = found.pairs[:shown]
    summary = f"{len(found.differing):,} of {len(found.pairs):,} outputs differ."
    if len(chosen) < len(found.pairs):
        summary += f" Here are the {len(chosen):,} that differ most."
    page = _PAGE.format(
        title=escape(" · ".join(found.names)),
        style=(files("seqloom.viz") / "comparison.css").read_text(encoding="utf-8"),
        summary=summary,
        scores=_scores(found),
        pairs="\n".join(_pair(pair, found.names) for pair in chosen),
    )
    write_file(path, page.encode())


def _scores(found: Comparison) -> str:
    if not found.scores[0]:
        return ""
    heads = "".join(f"<th>{escape(name)}</th>" for name in found.names)
    rows = "".join(
        f"<tr><th>{escape(ours.name)}</th><td>{ours.value:.2f}</td><td>{theirs.value:.2f}</td></tr>"
        for ours, theirs in zip(*found.scores, strict=True)
    )
    return f"<table><thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _pair(pair: Pair, names: tuple[str, str]) -> str:
    references = "".join(
        f'<p class="line"><span>reference</span><q dir="auto">{escape(one)}</q></p>'
        for one in pair.references
    )
    sides = "".join(_side(pair, place, name) for place, name in enumerate(names))
    return (
        f'<section><h2><span>{pair.number}</span><q dir="auto">{escape(pair.source)}</q></h2>'
        f'{references}<div class="sides">{sides}</div></section>'
    )


def _side(pair: Pair, place: int, name: str) -> str:
    output = pair.outputs[place]
    quality = "" if pair.qualities is None else f"chrF {pair.qualities[place]:.1f} · "
    numbers = f"{quality}log p {sum(output.log_probabilities):.2f} · score {output.score:.3f}"
    return (
        f'<div><h3>{escape(name)} <small>{numbers}</small></h3><p class="output" dir="auto">'
        f"{_marked(pair, place)}</p>{attention_picture(output)}</div>"
    )


def _marked(pair: Pair, place: int) -> str:
    """An output, marked where the other says something else."""
    found = []
    for part in word_difference(pair.outputs[0].text, pair.outputs[1].text):
        words = escape(" ".join((part.ours, part.theirs)[place]))
        if words:
            found.append(words if part.same else f"<mark>{words}</mark>")
    return " ".join(found)


def attention_picture(output: Prediction) -> str:
    """Where each piece looked: pieces that were read across, pieces put out downwards."""
    if output.attention is None or not output.source_pieces:
        return '<p class="soft">this run looks at no parts of its source: it has no attention</p>'
    weights: Sequence[Sequence[float]] = output.attention.tolist()
    across, down = (
        [short(one) for one in output.source_pieces],
        [short(one) for one in output.pieces],
    )
    left = 12 + _LETTER * max(map(len, down))
    top = 12 + _LETTER * 0.75 * max(map(len, across))
    width, height = left + _CELL * len(across) + top * 0.6, top + _CELL * len(down) + 4
    parts = [
        f'<text x="{left - 8:.0f}" y="{top + _CELL * (row + 0.68):.0f}" text-anchor="end">'
        f"{escape(word)}</text>"
        for row, word in enumerate(down)
    ]
    parts += [
        f'<text transform="translate({left + _CELL * (column + 0.62):.0f} {top - 6:.0f}) '
        f'rotate(-50)">{escape(word)}</text>'
        for column, word in enumerate(across)
    ]
    parts += [
        f'<rect x="{left + _CELL * column:.0f}" y="{top + _CELL * row:.0f}" '
        f'fill-opacity="{max(weight, 0.03):.2f}"><title>{escape(down[row])} ← '
        f"{escape(across[column])}: {weight:.2f}</title></rect>"
        for row, line in enumerate(weights)
        for column, weight in enumerate(line)
    ]
    return (
        f'<svg role="img" aria-label="where each piece looked" width="{width:.0f}" '
        f'height="{height:.0f}">{"".join(parts)}</svg>'
    )
