"""Log-probability and BLEU of the outputs for beam widths from 1 to 10.

    python -m bench.widths runs/demo                   300 sentences of the dev split
    python -m bench.widths runs/demo --sentences 1000

Hypotheses are ranked by log p (length_penalty 0) and by log p per token (length_penalty 1). Writes
docs/results/beam-widths.json and docs/pictures/beam-widths.png, and prints the table.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqloom.config.schema.decoding import BeamConfig
from seqloom.data.example import Example
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run, load
from seqloom.metrics.bleu import bleu
from seqloom.viz.line_plot import Curve, LinePlot, save_line_plots

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "beam-widths.json"
PICTURE = ROOT / "docs" / "pictures" / "beam-widths.png"
WIDTHS = range(1, 11)
EXPONENTS = (0.0, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.widths",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    run = load(arguments.run, engine="torch")
    examples = merge_references(read_split(run.config.data, "dev"))[: arguments.sentences]
    rows = [measure(run, examples, width, exponent) for exponent in EXPONENTS for width in WIDTHS]
    task = run.config.task.kind
    results = {"task": task, "split": "dev", "sentences": len(examples), "rows": rows}
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    save_line_plots(arguments.picture, *plots(rows))
    print(table(rows))


def measure(run: Run, examples: Sequence[Example], width: int, exponent: float) -> dict[str, Any]:
    """Mean log p, mean length in tokens, and BLEU of the best outputs."""
    decoding = BeamConfig(width=width, length_penalty=exponent, length_counts_end=True)
    sources = [example.source for example in examples]
    predictions = run.predict(
        sources,
        PredictionOptions(attention=False, split=False, pass_through=False),
        decoding=decoding,
    )
    best = [outputs[0] for outputs in predictions]
    return {
        "width": width,
        "length_penalty": exponent,
        "log_probability": sum(sum(output.log_probabilities) for output in best) / len(best),
        "tokens": sum(len(output.log_probabilities) for output in best) / len(best),
        "bleu": bleu(
            [output.text for output in best], [example.references for example in examples]
        ).value,
    }


def plots(rows: Sequence[dict[str, Any]]) -> list[LinePlot]:
    """Log-probability on the left, BLEU on the right; one curve per exponent."""
    names = {0.0: "ranked by log p", 1.0: "ranked by log p per token"}
    return [
        LinePlot(
            title=title,
            x_label="beam width",
            y_label=upright,
            curves=[
                Curve(
                    name,
                    [(row["width"], row[key]) for row in rows if row["length_penalty"] == exponent],
                )
                for exponent, name in names.items()
            ],
        )
        for key, title, upright in (
            ("log_probability", "Log-probability", "mean log p of an output"),
            ("bleu", "Quality", "BLEU"),
        )
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    lines = ["| width | exponent | log p | tokens | BLEU |", "|---:|---:|---:|---:|---:|"]
    lines += [
        f"| {row['width']} | {row['length_penalty']:g} | {row['log_probability']:.2f} "
        f"| {row['tokens']:.1f} | {row['bleu']:.1f} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
