"""Translate a file on a GPU, as `seqloom translate` does, in several ways.

    python -m bench.file_gpu OUT.json --multi30k FOLDER

Trains the recipe `multi30k-de-en-fast` and translates its 29,000 training sources in portions of
1,000 and of 10,000 lines. In one case, finished outputs stay in their batch until its longest output
is complete; in the other, the last sources of a batch continue in a smaller batch. The first pass of
each case captures its batch shapes; further passes are measured.
"""

import argparse
import datetime
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import seqloom
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.decoding import BeamConfig, GreedyConfig, SearchConfig
from seqloom.data.readers.text_files import read_lines
from seqloom.decoding.fast import captured
from seqloom.inference.options import TEXT_ONLY
from seqloom.inference.run import Run
from seqloom.jobs.batch_translation.portions import CPU_PORTION, GPU_PORTION

RECIPE = "multi30k-de-en-fast"
SEARCHES: dict[str, SearchConfig] = {"greedy": GreedyConfig(), "beam 5": BeamConfig(width=5)}
CASES = [(portion, smaller) for portion in (CPU_PORTION, GPU_PORTION) for smaller in (False, True)]
"""(lines per portion, True if the last sources of a batch continue in a smaller batch)"""
TEXT = """One {machine}, torch {torch}, Python {python}. The recipe `multi30k-de-en-fast` translates {lines:,} German lines, text in and
text out, in the precision of its weights (fp32). "First pass" is the first translation of the file, in seconds: it captures a
CUDA graph for each batch shape. Lines per second are measured in {passes} further passes: median (lowest–highest). "Smaller
batches" means that the last sources of a batch continue in a smaller one; otherwise finished outputs stay in the batch until its
longest output is complete. `seqloom translate` uses smaller batches, and on a GPU portions of 10,000 lines. "Equal" is the
number of outputs that equal those of the first row with this search. Written by
`python -m bench.file_gpu docs/results/benchmarks/file-gpu.json --multi30k FOLDER`; measured {measured}.

| search | lines per portion | smaller batches | lines/s | first pass, s | equal |
|---|---|---|---|---|---|
{rows}
"""


def translate(run: Run, lines: Sequence[str], search: SearchConfig, portion: int) -> list[str]:
    outputs = [
        prediction[0].text
        for first in range(0, len(lines), portion)
        for prediction in run.predict(lines[first : first + portion], TEXT_ONLY, decoding=search)
    ]
    torch.cuda.synchronize()
    return outputs


def measure(
    run: Run, lines: Sequence[str], search: SearchConfig, passes: int
) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    expected: list[str] = []
    for portion, smaller in CASES:
        captured._PROGRAMS.clear()
        sizes = captured.SMALLER_BATCHES if smaller else ()
        seconds = []
        with patch.object(captured, "SMALLER_BATCHES", sizes):
            for _ in range(passes + 1):
                start = time.perf_counter()
                outputs = translate(run, lines, search, portion)
                seconds.append(time.perf_counter() - start)
        expected = expected or outputs
        result = {
            "portion": portion,
            "smaller": smaller,
            "first_seconds": seconds[0],
            "seconds": seconds[1:],
            "equal": sum(one == other for one, other in zip(outputs, expected, strict=True)),
        }
        print(result, flush=True)
        results.append(result)
    return results


def table(results: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md."""
    rows = []
    for search, cases in results["searches"].items():
        for case in cases:
            rates = sorted(results["lines"] / seconds for seconds in case["seconds"])
            rows.append(
                f"| {search} | {case['portion']:,} | {'yes' if case['smaller'] else 'no'} "
                f"| {statistics.median(rates):,.0f} ({rates[0]:,.0f}–{rates[-1]:,.0f}) "
                f"| {case['first_seconds']:.1f} | {case['equal']:,} |"
            )
    return TEXT.format(**(results | {"rows": "\n".join(rows)}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--multi30k", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--passes", type=int, default=3)
    arguments = parser.parse_args()
    config = load_recipe(RECIPE, [f"data.folder={arguments.multi30k}"]).config
    lines = list(read_lines(arguments.multi30k / "train.de.gz"))
    with tempfile.TemporaryDirectory() as folder:
        seqloom.train(config, Path(folder) / "run")
        run = seqloom.load(Path(folder) / "run")
        report = {
            "machine": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "lines": len(lines),
            "passes": arguments.passes,
            "searches": {
                name: measure(run, lines, search, arguments.passes)
                for name, search in SEARCHES.items()
            },
        }
    arguments.out.write_text(json.dumps(report, indent=1))
    print(table(report))


if __name__ == "__main__":
    main()
