"""Write attention maps, searches and comparisons of runs as HTML pages.

The pages consist of the components of the web page, `components/*.js` and `*.css`. Each page is one
file: `bundle_modules` joins the modules that it needs to one script. The content security policy of
the page allows only this script, and no other file. Without JavaScript, the page shows tables.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.analysis.comparison import OutputPair, RunComparison
from seqloom.analysis.search_inspection import InspectedSearch
from seqloom.core.finite_json import to_finite_json
from seqloom.core.storage import write_file
from seqloom.inference.prediction import Prediction
from seqloom.metrics.subword_merging import AttentionMap
from seqloom.viz.search_tree import search_title, search_tree_data

COMPONENTS = Path(__file__).parent / "components"
"""Folder of the JavaScript modules and style sheets. The HTTP server serves it to the web page."""
_STYLE_SHEETS = ("base", "controls", "words", "pictures", "exported-page")
_IMPORT = re.compile(r'^import \{([^}]+)\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|(?:async )?function\*?|class) (\w+))", re.MULTILINE)
_DECIMALS = 4
"""Number of decimals of attention weights in a page."""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data: blob:; \
style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main id="main"><noscript><h1 dir="auto">{title}</h1>
{tables}
</noscript></main>
<div id="live" class="visually-hidden" aria-live="polite" role="status"></div>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


@dataclass(frozen=True)
class AttentionCard:
    """One output on an attention page.

    Attributes:
        number: heading, such as "3", or "3, output 1 of 2" if a source has several outputs.
        text: the output.
        note: a line below the output, such as the score.
        view: description of the weights in `chosen`, such as "mean of all layers and heads".
        chosen: weights (T, S) that the card shows first. None for a blank source line.
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
    """Write a page with the attention of each output."""
    tables = [
        _table(
            f"{card.number}: {card.text}",
            ("", *card.chosen.sources),
            (
                (output, *(f"{100 * weight:.0f}" for weight in row))
                for output, row in zip(card.chosen.outputs, card.chosen.weights, strict=True)
            ),
        )
        for card in cards
        if card.chosen is not None
    ]
    _save_page(path, "attention-page", title, {"cards": [*map(_card_data, cards)]}, tables)


def save_search_page(path: Path, searched: InspectedSearch) -> None:
    """Write a page that plays a traced search step by step."""
    data = {
        "tree": search_tree_data(searched),
        "outputs": [_output_data(output) for output in searched.outputs],
        "length_counts_end": searched.record.length_counts_end,
    }
    rows = (
        (f"{output.score:.3f}", f"{sum(output.log_probabilities):.2f}", output.text)
        for output in searched.outputs
    )
    table = _table("Outputs", ("score", "log p", "text"), rows)
    _save_page(path, "search-page", search_title(searched), data, [table])


def save_comparison_page(path: Path, comparison: RunComparison, shown: int) -> None:
    """Write a page that compares the outputs of two runs.

    shown: number of sentences on the page. They are those whose outputs differ most
    """
    pairs = comparison.pairs[:shown]
    summary = f"{len(comparison.differing):,} of {len(comparison.pairs):,} outputs differ."
    if len(pairs) < len(comparison.pairs):
        summary += f" The page shows the {len(pairs):,} sentences that differ most."
    scores = [
        (first.name, f"{first.value:.2f}", f"{second.value:.2f}")
        for first, second in zip(*comparison.scores, strict=True)
    ]
    data = {
        "names": comparison.names,
        "summary": summary,
        "scores": scores,
        "pairs": [_pair_data(pair) for pair in pairs],
    }
    tables = [
        _table("Scores", ("", *comparison.names), scores),
        _table(
            summary,
            ("source", *comparison.names),
            ((pair.source, *(output.text for output in pair.outputs)) for pair in pairs),
        ),
    ]
    _save_page(path, "comparison-page", " · ".join(comparison.names), data, tables)


def _card_data(card: AttentionCard) -> dict[str, Any]:
    """Return the values of a card. The attention is in the form of the route /api/attention."""
    attention = None
    if card.chosen is not None:
        heads: Any = (
            [] if card.heads is None else np.moveaxis(card.heads.weights, 0, 2)
        )  # (L, H, T, S)
        attention = {
            "outputs": card.chosen.outputs,
            "sources": card.chosen.sources,
            "weights": np.round(card.chosen.weights, _DECIMALS).tolist(),
            "heads": np.round(heads, _DECIMALS).tolist(),
            "view": card.view,
        }
    return {"number": card.number, "text": card.text, "note": card.note, "attention": attention}


def _output_data(output: Prediction) -> dict[str, Any]:
    names = ("text", "pieces", "log_probabilities", "score", "finished", "copied_parts")
    return {name: getattr(output, name) for name in names}


def _pair_data(pair: OutputPair) -> dict[str, Any]:
    outputs = []
    for index, output in enumerate(pair.outputs):
        quality = "" if pair.qualities is None else f"chrF {pair.qualities[index]:.1f} · "
        log_probability = sum(output.log_probabilities)
        attention = output.attention
        outputs.append(
            {
                **_output_data(output),
                "facts": f"{quality}log p {log_probability:.2f} · score {output.score:.3f}",
                "attention": attention
                if attention is None
                else {
                    "outputs": output.pieces,
                    "sources": output.source_pieces,
                    "weights": np.round(attention.numpy().astype(float), _DECIMALS).tolist(),
                },
            }
        )
    return {
        "number": pair.number,
        "source": pair.source,
        "references": pair.references,
        "outputs": outputs,
    }


def _save_page(
    path: Path, entry: str, title: str, data: dict[str, Any], tables: Iterable[str]
) -> None:
    """Write a page.

    entry:  name of the module that fills the page
    data:   values for this module
    tables: HTML that browsers show if JavaScript is off
    """
    script = bundle_modules(entry)
    page = _PAGE.format(
        title=escape(title),
        style="".join(_read_component(f"{name}.css") for name in _STYLE_SHEETS),
        tables="\n".join(tables),
        # A text can contain "</script>". JSON allows an escaped "<".
        data=json.dumps(to_finite_json(data), ensure_ascii=False).replace("<", "\\u003c"),
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    write_file(path, page.encode())


def _table(caption: str, headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [
        "".join(f'<td dir="auto">{escape(cell)}</td>' for cell in row) for row in (headers, *rows)
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"


def bundle_modules(entry: str) -> str:
    """Join a module and all modules that it imports to one script.

    Each module becomes a function that is called once and returns its exports. Modules may import
    names from other modules of the folder (`import { make } from "./dom.js"`) and export constants,
    functions and classes.
    """
    modules: dict[str, str] = {}  # in an order in which each module follows those that it imports
    exports: dict[str, list[str]] = {}

    def add(name: str) -> None:
        if name in modules:
            return
        source = _read_component(f"{name}.js")
        for imported in _IMPORT.finditer(source):
            add(imported[2])
            missing = {each.strip() for each in imported[1].split(",")} - {*exports[imported[2]]}
            assert not missing, f"{name}.js imports {missing} from {imported[2]}.js"
        exports[name] = _EXPORT.findall(source)
        body = _EXPORT.sub("", _IMPORT.sub(_import_as_constant, source))
        assert not re.search(r"^(import|export)\b", body, re.MULTILINE), f"cannot bundle {name}.js"
        returned = f"return {{ {', '.join(exports[name])} }};"
        modules[name] = f"const {_identifier(name)} = (() => {{\n{body}{returned}\n}})();\n"

    add(entry)
    return '\n"use strict";\n' + "".join(modules.values())


def _import_as_constant(match: re.Match[str]) -> str:
    return f"const {{{match[1]}}} = {_identifier(match[2])};\n"


def _identifier(module: str) -> str:
    return f"module_{module.replace('-', '_')}"


def _read_component(name: str) -> str:
    return (COMPONENTS / name).read_text(encoding="utf-8")
