"""Write a self-contained HTML page with the outputs and the attention of two runs side by side."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from seqloom.analysis.comparison import OutputPair, RunComparison
from seqloom.core.storage import write_file
from seqloom.inference.prediction import Prediction
from seqloom.metrics.sentence_scores import diff_words
from seqloom.viz.search_trees.search_tree_layout import shorten_piece

_CELL_PIXELS, _LETTER_PIXELS = 22, 7.2

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


def save_comparison_page(path: Path, comparison: RunComparison, shown: int) -> None:
    """Write the page that compares the outputs of two runs.

    shown: number of sentences on the page. They are those whose outputs differ most
    """
    pairs = comparison.pairs[:shown]
    summary = f"{len(comparison.differing):,} of {len(comparison.pairs):,} outputs differ."
    if len(pairs) < len(comparison.pairs):
        summary += f" The page shows the {len(pairs):,} sentences that differ most."
    page = _PAGE.format(
        title=escape(" · ".join(comparison.names)),
        style=(files("seqloom.viz") / "assets" / "comparison.css").read_text(encoding="utf-8"),
        summary=summary,
        scores=_score_table(comparison),
        pairs="\n".join(_pair_section(pair, comparison.names) for pair in pairs),
    )
    write_file(path, page.encode())


def _score_table(comparison: RunComparison) -> str:
    if not comparison.scores[0]:
        return ""
    headers = "".join(f"<th>{escape(name)}</th>" for name in comparison.names)
    rows = "".join(
        f"<tr><th>{escape(first.name)}</th><td>{first.value:.2f}</td>"
        f"<td>{second.value:.2f}</td></tr>"
        for first, second in zip(*comparison.scores, strict=True)
    )
    return f"<table><thead><tr><td></td>{headers}</tr></thead><tbody>{rows}</tbody></table>"


def _pair_section(pair: OutputPair, names: tuple[str, str]) -> str:
    references = "".join(
        f'<p class="line"><span>reference</span><q dir="auto">{escape(reference)}</q></p>'
        for reference in pair.references
    )
    outputs = "".join(_output_column(pair, index, name) for index, name in enumerate(names))
    return (
        f'<section><h2><span>{pair.number}</span><q dir="auto">{escape(pair.source)}</q></h2>'
        f'{references}<div class="columns">{outputs}</div></section>'
    )


def _output_column(pair: OutputPair, index: int, name: str) -> str:
    output = pair.outputs[index]
    quality = "" if pair.qualities is None else f"chrF {pair.qualities[index]:.1f} · "
    numbers = f"{quality}log p {sum(output.log_probabilities):.2f} · score {output.score:.3f}"
    return (
        f'<div><h3>{escape(name)} <small>{numbers}</small></h3><p class="output" dir="auto">'
        f"{_marked_text(pair, index)}</p>{attention_svg(output)}</div>"
    )


def _marked_text(pair: OutputPair, index: int) -> str:
    """Return one output as HTML, with <mark> around the words that differ from the other output."""
    spans = []
    for part in diff_words(pair.outputs[0].text, pair.outputs[1].text):
        words = escape(" ".join((part.ours, part.theirs)[index]))
        if words:
            spans.append(words if part.same else f"<mark>{words}</mark>")
    return " ".join(spans)


def attention_svg(output: Prediction) -> str:
    """Return the attention matrix as SVG: source pieces as columns, output pieces as rows.

    If the output has no attention weights, return an HTML paragraph that says so.
    """
    if output.attention is None or not output.source_pieces:
        return '<p class="soft">This run has no attention.</p>'
    weights: Sequence[Sequence[float]] = output.attention.tolist()
    columns = [shorten_piece(piece) for piece in output.source_pieces]
    rows = [shorten_piece(piece) for piece in output.pieces]
    left = 12 + _LETTER_PIXELS * max(map(len, rows))
    top = 12 + _LETTER_PIXELS * 0.75 * max(map(len, columns))
    width = left + _CELL_PIXELS * len(columns) + top * 0.6
    height = top + _CELL_PIXELS * len(rows) + 4
    elements = [
        f'<text x="{left - 8:.0f}" y="{top + _CELL_PIXELS * (row + 0.68):.0f}" text-anchor="end">'
        f"{escape(piece)}</text>"
        for row, piece in enumerate(rows)
    ]
    elements += [
        f'<text transform="translate({left + _CELL_PIXELS * (column + 0.62):.0f} {top - 6:.0f}) '
        f'rotate(-50)">{escape(piece)}</text>'
        for column, piece in enumerate(columns)
    ]
    elements += [
        f'<rect x="{left + _CELL_PIXELS * column:.0f}" y="{top + _CELL_PIXELS * row:.0f}" '
        f'fill-opacity="{max(weight, 0.03):.2f}"><title>{escape(rows[row])} ← '
        f"{escape(columns[column])}: {weight:.2f}</title></rect>"
        for row, row_weights in enumerate(weights)
        for column, weight in enumerate(row_weights)
    ]
    return (
        f'<svg role="img" aria-label="Attention weights" width="{width:.0f}" '
        f'height="{height:.0f}">{"".join(elements)}</svg>'
    )
