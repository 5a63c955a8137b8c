"""Log-probability and BLEU of the outputs of a run for beam widths from 1 to 10.

Hypotheses are ranked by log p (length_penalty 0) and by log p per token (length_penalty 1).
"""

import argparse
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import store
from bench.tables import markdown
from seqloom.config.schema.decoding import BeamConfig
from seqloom.data.example import Example
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.inference.run import Run, load
from seqloom.metrics.bleu import bleu
from seqloom.viz.chart import LineChart, Series, render_svg

PICTURE = store.ROOT / "docs" / "pictures" / "beam-widths.png"
WIDTHS = range(1, 11)
EXPONENTS = {0.0: "ranked by log p", 1.0: "ranked by log p per token"}
PANELS = (
    ("log_probability", "Log-probability", "mean log p of an output"),
    ("bleu", "Quality", "BLEU"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--sentences", type=int, default=300, help="of the dev split (default: 300)"
    )


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    run = load(options.run, engine="torch")
    examples = merge_references(read_split(run.config.data, "dev"))[: options.sentences]
    rows = [measure_width(run, examples, width, each) for each in EXPONENTS for width in WIDTHS]
    task = run.config.task.kind
    yield {"task": task, "split": "dev", "sentences": len(examples), "rows": rows}


def measure_width(
    run: Run, examples: Sequence[Example], width: int, exponent: float
) -> dict[str, Any]:
    """Mean log p, mean length in tokens, and BLEU of the best outputs."""
    decoding = BeamConfig(width=width, length_penalty=exponent, length_counts_end=True)
    outputs = run.translate(
        [example.source for example in examples],
        decoding=decoding,
        attention=False,
        split=False,
        pass_through=False,
    )
    references = [example.references for example in examples]
    return {
        "width": width,
        "length_penalty": exponent,
        "log_probability": sum(sum(each.log_probabilities) for each in outputs) / len(outputs),
        "tokens": sum(len(each.log_probabilities) for each in outputs) / len(outputs),
        "bleu": bleu([output.text for output in outputs], references).value,
    }


def draw() -> None:
    render_svg(*plots(store.read("beam-widths")["rows"])).save(PICTURE)


def plots(rows: Sequence[dict[str, Any]]) -> list[LineChart]:
    """Log-probability on the left, BLEU on the right; one line per exponent."""
    lines = {
        name: [row for row in rows if row["length_penalty"] == exponent]
        for exponent, name in EXPONENTS.items()
    }
    return [
        LineChart(
            title=title,
            x_label="beam width",
            y_label=upright,
            series=[
                Series(name, [row["width"] for row in line], [[row[key]] for row in line])
                for name, line in lines.items()
            ],
            zero=False,
        )
        for key, title, upright in PANELS
    ]


def table(results: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['width']}",
            f"{row['length_penalty']:g}",
            f"{row['log_probability']:.2f}",
            f"{row['tokens']:.1f}",
            f"{row['bleu']:.1f}",
        ]
        for row in results["rows"]
    ]
    return markdown(["width", "exponent", "log p", "tokens", "BLEU"], rows)
