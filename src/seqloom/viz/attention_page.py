"""Write attention maps as a self-contained HTML page.

The page has one card per output. A card shows the source and output tokens and a table of the
attention weights. The cells of the table are shaded as a heat map. If there are several heads, the
card also shows a small map of each head. A click on a map fills the table with the weights of that
head. Without JavaScript the page shows only the tokens and the table.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from seqloom.core.storage import write_file
from seqloom.metrics.subword_merging import AttentionMap

_DARK_CELL = 0.5
"""Cells with a larger weight than this are dark, so their number is printed in a light colour."""
_DECIMALS = 4

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
<p>Point at an output word, or move to it with the Tab key, to highlight the source words it attends to. Point at
a source word to highlight the output words that attend to it. Numbers are percentages of a row.</p>
{cards}
<script>
{script}</script>
</body>
</html>
"""

_CARD = """<section aria-label="{label}">
<h2><span class="number">{number}</span>{text}</h2>
<div class="words source"><span>source</span>{sources}</div>
<div class="words output"><span>output</span>{outputs}</div>
<p>{note}</p>
<div class="maps">
<div class="table" tabindex="0" role="region" aria-label="Attention weights">
<p class="view">{view}</p>
<table>
<thead><tr><td class="corner"></td>{headers}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<div class="heads" role="group" aria-label="Layers and heads"></div>
</div>
<script type="application/json">{data}</script>
</section>"""

_BLANK_CARD = """<section><h2><span class="number">{number}</span></h2>
<p>a blank line: no input, no output</p></section>"""


@dataclass(frozen=True)
class AttentionCard:
    """One output on the page.

    Attributes:
        number: heading, such as "3", or "3, output 1 of 2" if a source has several outputs.
        text: the output.
        note: a line that the card shows below the source and output tokens, such as the score.
        view: description of the weights in `chosen`, such as "mean of all layers and heads".
        chosen: weights (T, S) that the table shows first. None for a blank source line.
        heads: weights (T, L, H, S) of all layers and heads, for the same tokens. If None, the card
            shows no maps of single heads.
    """

    number: str
    text: str = ""
    note: str = ""
    view: str = ""
    chosen: AttentionMap | None = None
    heads: AttentionMap | None = None


def save_attention_page(path: Path, title: str, cards: Sequence[AttentionCard]) -> None:
    """Write the page to `path`."""
    assets = files("seqloom.viz") / "assets"
    page = _PAGE.format(
        title=escape(title),
        style=(assets / "attention.css").read_text(encoding="utf-8"),
        script=(assets / "attention.js").read_text(encoding="utf-8"),
        cards="\n".join(_card(card) for card in cards),
    )
    write_file(path, page.encode())


def _card(card: AttentionCard) -> str:
    chosen = card.chosen
    if chosen is None:
        return _BLANK_CARD.format(number=escape(card.number))
    return _CARD.format(
        label=escape(f"{card.number}: {card.text}"),
        number=escape(card.number),
        text=f'<bdi dir="auto">{escape(card.text)}</bdi>',
        note=escape(card.note),
        view=escape(card.view),
        sources="".join(_word_button(word) for word in chosen.sources),
        outputs="".join(_word_button(word) for word in chosen.outputs),
        headers="".join(_column_header(word) for word in chosen.sources),
        rows="\n".join(
            _row(word, row) for word, row in zip(chosen.outputs, chosen.weights, strict=True)
        ),
        data=_script_data(card),
    )


def _word_button(word: str) -> str:
    # dir="auto" keeps a right-to-left word from reordering its neighbours.
    return f'<button type="button" class="word" dir="auto">{escape(word)}</button>'


def _column_header(word: str) -> str:
    return f'<th scope="col" class="source"><span dir="auto">{escape(word)}</span></th>'


def _row(word: str, weights: Sequence[float]) -> str:
    cells = "".join(_cell(float(weight)) for weight in weights)
    return f'<tr><th scope="row" dir="auto">{escape(word)}</th>{cells}</tr>'


def _cell(weight: float) -> str:
    percent = round(100 * weight)
    css_class = ' class="dark"' if weight > _DARK_CELL else "" if percent else ' class="small"'
    return f'<td{css_class} style="--weight:{weight:.4f}">{percent or "·"}</td>'


def _script_data(card: AttentionCard) -> str:
    """Return the attention weights of a card as JSON, for the script of the page.

    "<" is escaped, so that no text ends the script element.
    """
    assert card.chosen is not None
    weights = np.zeros((0, 0, 0, 0)) if card.heads is None else card.heads.weights
    heads = np.moveaxis(weights, 0, 2)  # (L, H, T, S)
    content = {
        "view": card.view,
        "chosen": np.round(card.chosen.weights, _DECIMALS).tolist(),
        "heads": np.round(heads, _DECIMALS).tolist(),
    }
    return json.dumps(content).replace("<", "\\u003c")
