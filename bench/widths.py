"""What a wider beam finds: log-probability and BLEU for widths 1 to 10.

    python -m bench.widths runs/demo                   300 sentences of the dev split
    python -m bench.widths runs/demo --sentences 1000

Twice: by log p alone (length_exponent 0), and by log p per token (length_exponent 1). Writes
docs/results/beam-widths.json and docs/pictures/beam-widths.png, and prints the table.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqloom.config.schema.decoding import BeamConfig
from seqloom.data.example import Example
from seqloom.data.splits import merge_references, read_split
from seqloom.metrics.bleu import bleu
from seqloom.runs.options import PredictionOptions
from seqloom.runs.run import Run, load
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
    chosen = parser.parse_args()
    run = load(chosen.run, engine="torch")
    examples = merge_references(read_split(run.config.data, "dev"))[: chosen.sentences]
    rows = [measure(run, examples, width, each) for each in EXPONENTS for width in WIDTHS]
    task = run.config.task.kind
    results = {"task": task, "split": "dev", "sentences": len(examples), "rows": rows}
    chosen.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    save_line_plots(chosen.picture, *plots(rows))
    print(table(rows))


def measure(run: Run, examples: Sequence[Example], width: int, exponent: float) -> dict[str, Any]:
    """Of the best outputs: the mean log p of a sentence, its mean length in tokens, BLEU."""
    decoding = BeamConfig(width=width, length_exponent=exponent)
    wish = PredictionOptions(attention=False)
    found = run.predict([one.source for one in examples], wish, decoding=decoding)
    best = [outputs[0] for outputs in found]
    return {
        "width": width,
        "length_exponent": exponent,
        "log_probability": sum(sum(one.log_probabilities) for one in best) / len(best),
        "tokens": sum(len(one.log_probabilities) for one in best) / len(best),
        "bleu": bleu([one.text for one in best], [one.references for one in examples]).value,
    }


def plots(rows: Sequence[dict[str, Any]]) -> list[LinePlot]:
    """Log-probability on the left, BLEU on the right; a curve for each exponent."""
    names = {0.0: "ranked by log p", 1.0: "ranked by log p per token"}
    return [
        LinePlot(
            title=title,
            x_label="beam width",
            y_label=upright,
            curves=[
                Curve(
                    name,
                    [
                        (row["width"], row[key])
                        for row in rows
                        if row["length_exponent"] == exponent
                    ],
                )
                for exponent, name in names.items()
            ],
        )
        for key, title, upright in (
            ("log_probability", "What is found", "mean log p of an output"),
            ("bleu", "How good it is", "BLEU"),
        )
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """As Markdown."""
    lines = ["| width | exponent | log p | tokens | BLEU |", "|---:|---:|---:|---:|---:|"]
    lines += [
        f"| {row['width']} | {row['length_exponent']:g} | {row['log_probability']:.2f} "
        f"| {row['tokens']:.1f} | {row['bleu']:.1f} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
