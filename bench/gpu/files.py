"""Translating a file on a GPU, as `seqloom translate` does, in several ways.

Trains the recipe `multi30k-de-en-fast` and translates its 29,000 training sources in portions of
1,000 and of 10,000 lines. In one case, finished outputs stay in their batch until its longest output
is complete; in the other, the last sources of a batch continue in a smaller batch. The first pass of
each case captures its batch shapes; further passes are measured.
"""

import argparse
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import seqloom
from bench.tables import markdown
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


def translate(run: Run, lines: Sequence[str], search: SearchConfig, portion: int) -> list[str]:
    outputs = [
        prediction[0].text
        for first in range(0, len(lines), portion)
        for prediction in run.predict(lines[first : first + portion], TEXT_ONLY, decoding=search)
    ]
    torch.cuda.synchronize()
    return outputs


def measure_cases(
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


HEAD = "search;lines per portion;smaller batches;lines/s;first pass, s;equal"


def table(results: dict[str, Any]) -> str:
    rows = []
    for search, cases in results["searches"].items():
        for case in cases:
            rates = sorted(results["lines"] / seconds for seconds in case["seconds"])
            rows.append(
                [
                    search,
                    f"{case['portion']:,}",
                    "yes" if case["smaller"] else "no",
                    f"{statistics.median(rates):,.0f} ({rates[0]:,.0f}–{rates[-1]:,.0f})",
                    f"{case['first_seconds']:.1f}",
                    f"{case['equal']:,}",
                ]
            )
    return markdown(HEAD.split(";"), rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder with the folder multi30k")
    parser.add_argument("--passes", type=int, default=3)


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    multi30k = options.data / "multi30k"
    config = load_recipe(RECIPE, [f"data.folder={multi30k}"]).config
    lines = list(read_lines(multi30k / "train.de.gz"))
    with tempfile.TemporaryDirectory() as folder:
        seqloom.train(config, Path(folder) / "run")
        run = seqloom.load(Path(folder) / "run")
        searches = {
            name: measure_cases(run, lines, search, options.passes)
            for name, search in SEARCHES.items()
        }
    yield {"lines": len(lines), "passes": options.passes, "searches": searches}
