"""Measure the latency of single sentences on a CPU for each engine of a trained run.

    seqloom demo
    python -m bench.latency runs/demo [OUT.json] [SENTENCES]

Translates sentences of the run's test split one at a time, text in and text out. Loading,
converting and compiling happen before the measurement.
"""

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.machine import describe_processor
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, EngineConfig, GreedyConfig
from seqloom.core.errors import ConfigError
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.inference.options import TEXT_ONLY
from seqloom.inference.run import Run, load

DECODINGS: dict[str, DecodingConfig] = {"greedy": GreedyConfig(), "beam 5": BeamConfig(width=5)}
ENGINES = ("torch", "compiled", "ctranslate2")
WARM_UP = 5
"""Number of sentences translated before the measurement."""


def measure(folder: Path, sentences: int) -> dict[str, Any]:
    """The latencies of every engine that supports the run, with every search."""
    run = load(folder)
    examples = merge_references(list(read_split(run.config.data, "test")))[:sentences]
    texts = [example.source for example in examples]
    latencies: dict[str, dict[str, dict[str, float]]] = {}
    for kind in ENGINES:
        run.engine = EngineConfig.model_validate({"kind": kind})
        for search, decoding in DECODINGS.items():
            try:
                name = run.choose_engine(TEXT_ONLY, decoding=decoding).name
            except ConfigError as error:
                print(f"{kind}: {error}", file=sys.stderr)
                continue
            latencies.setdefault(name, {})[search] = measure_latency(run, texts, decoding)
    return {
        "machine": describe_machine(),
        "run": folder.name,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "sentences": len(texts),
        "engines": latencies,
    }


def measure_latency(run: Run, texts: Sequence[str], decoding: DecodingConfig) -> dict[str, float]:
    """The median and the 95th percentile of the milliseconds for a single text."""
    calls = [partial(run.predict, [text], TEXT_ONLY, decoding=decoding) for text in texts]
    for call in calls[:WARM_UP]:
        call()
    times = sorted(1_000 * call_seconds(call) for call in calls)
    return {
        "p50": round(statistics.median(times), 2),
        "p95": round(times[int(0.95 * len(times))], 2),
    }


def describe_machine() -> dict[str, Any]:
    return {
        "machine": platform.machine(),
        "processor": describe_processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def call_seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


TEXT = """*{processor}, {threads} threads; torch {torch}; `python -m bench.latency runs/{run} OUT.json {sentences}`.*

The run `{run}` ({parameters:.1f} M parameters) translates {sentences} sentences of its test split one at a time, text in and
text out. Median and 95th percentile in milliseconds (p50 / p95).

| engine | {searches} |
|---|{rules}|
{rows}
"""


def table(results: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md."""
    rows = [
        f"| {engine} | "
        + " | ".join(f"{times['p50']:.1f} / {times['p95']:.1f}" for times in by_search.values())
        + " |"
        for engine, by_search in results["engines"].items()
    ]
    return TEXT.format(
        **results["machine"],
        run=results["run"],
        parameters=results["parameters"] / 1e6,
        sentences=results["sentences"],
        searches=" | ".join(DECODINGS),
        rules="|".join("---" for _ in DECODINGS),
        rows="\n".join(rows),
    )


if __name__ == "__main__":
    report = measure(Path(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 200)
    text = json.dumps(report, indent=2)
    print(text)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(f"{text}\n", encoding="utf-8")
