"""Attention as one page for a browser: a file that needs nothing but itself.

Each output is a card: its words and those of its source, a table of how much each looked at each
(which is the picture, and what a screen reader reads), and where there are several heads a small
picture of each, to be chosen. Without scripts the table is still there.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from seqloom.core.storage import write_file
from seqloom.metrics.merging import AttentionMap

_DEEP = 0.5
"""Above this a cell is so dark that what stands in it must be light."""
_DIGITS = 4

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
<p>Point at a word, or move to it by the Tab key, to see what it looked at; at a source word, to see who
looked at it. Numbers are percent of a row.</p>
{cards}
<script>
{script}</script>
</body>
</html>
"""

_CARD = """<section aria-label="{label}">
<h2><span class="number">{number}</span>{text}</h2>
<div class="words source"><span>read</span>{sources}</div>
<div class="words output"><span>put out</span>{outputs}</div>
<p>{note}</p>
<div class="looks">
<div class="table" tabindex="0" role="region" aria-label="where each output looked">
<p class="view">{view}</p>
<table>
<thead><tr><td class="corner"></td>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<div class="heads" role="group" aria-label="layers and heads"></div>
</div>
<script type="application/json">{data}</script>
</section>"""

_BLANK = """<section><h2><span class="number">{number}</span></h2>
<p>a blank line: nothing was read, nothing put out</p></section>"""


@dataclass(frozen=True)
class Card:
    """One output.

    number: of the text that was read, and of the output if there are several
    text:   what came out
    note:   what there is to say about it: its score, say
    view:   what `chosen` is: "mean of all layers and heads"
    chosen: (T, S), shown first; None: there is nothing, because a line was blank
    heads:  (T, L, H, S) with the same labels
    """

    number: str
    text: str = ""
    note: str = ""
    view: str = ""
    chosen: AttentionMap | None = None
    heads: AttentionMap | None = None


def save_page(path: Path, title: str, cards: Sequence[Card]) -> None:
    """All of it in one file."""
    here = Path(__file__)
    page = _PAGE.format(
        title=escape(title),
        style=here.with_name("attention.css").read_text(encoding="utf-8"),
        script=here.with_name("attention.js").read_text(encoding="utf-8"),
        cards="\n".join(_card(card) for card in cards),
    )
    write_file(path, page.encode())


def _card(card: Card) -> str:
    chosen = card.chosen
    if chosen is None:
        return _BLANK.format(number=escape(card.number))
    return _CARD.format(
        label=escape(f"{card.number}: {card.text}"),
        number=escape(card.number),
        text=f'<bdi dir="auto">{escape(card.text)}</bdi>',
        note=escape(card.note),
        view=escape(card.view),
        sources="".join(_word(word) for word in chosen.sources),
        outputs="".join(_word(word) for word in chosen.outputs),
        heads="".join(_head(word) for word in chosen.sources),
        rows="\n".join(
            _row(word, row) for word, row in zip(chosen.outputs, chosen.weights, strict=True)
        ),
        data=_data(card),
    )


def _word(word: str) -> str:
    # dir="auto": a word of a right-to-left script turns nothing around but itself.
    return f'<button type="button" class="word" dir="auto">{escape(word)}</button>'


def _head(word: str) -> str:
    return f'<th scope="col" class="source"><span dir="auto">{escape(word)}</span></th>'


def _row(word: str, weights: Sequence[float]) -> str:
    cells = "".join(_cell(float(weight)) for weight in weights)
    return f'<tr><th scope="row" dir="auto">{escape(word)}</th>{cells}</tr>'


def _cell(weight: float) -> str:
    percent = round(100 * weight)
    kind = ' class="deep"' if weight > _DEEP else "" if percent else ' class="small"'
    return f'<td{kind} style="--w:{weight:.4f}">{percent or "·"}</td>'


def _data(card: Card) -> str:
    """For the script. Nothing in it can end the element it stands in."""
    assert card.chosen is not None
    weights = np.zeros((0, 0, 0, 0)) if card.heads is None else card.heads.weights
    heads = np.moveaxis(weights, 0, 2)  # (L, H, T, S)
    content = {
        "view": card.view,
        "chosen": np.round(card.chosen.weights, _DIGITS).tolist(),
        "heads": np.round(heads, _DIGITS).tolist(),
    }
    return json.dumps(content).replace("<", "\\u003c")
