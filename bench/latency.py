"""How long a person waits for one sentence of a trained run on this CPU, engine by engine.

    seqloom demo
    python -m bench.latency runs/demo [OUT.json] [SENTENCES]

Sentences of the run's own test split, one at a time, text in and text out. What an engine does
once (loading, converting, compiling) is done before.
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

from bench.machine import processor
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, EngineConfig, GreedyConfig
from seqloom.core.errors import ConfigError
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.runs.options import TEXT_ONLY
from seqloom.runs.run import Run, load

DECODINGS: dict[str, DecodingConfig] = {"greedy": GreedyConfig(), "beam 5": BeamConfig(width=5)}
KINDS = ("torch", "compiled", "ctranslate2")
WARM = 5
"""Sentences that are translated before any is measured."""


def measure(folder: Path, sentences: int) -> dict[str, Any]:
    """Every engine that can answer, with every search."""
    run = load(folder)
    examples = merge_references(list(read_split(run.config.data, "test")))[:sentences]
    texts = [example.source for example in examples]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for kind in KINDS:
        run.engine = EngineConfig.model_validate({"kind": kind})
        for search, decoding in DECODINGS.items():
            try:
                name = run.choose_engine(TEXT_ONLY, decoding=decoding).name
            except ConfigError as error:
                print(f"{kind}: {error}", file=sys.stderr)
                continue
            found.setdefault(name, {})[search] = waits(run, texts, decoding)
    return {
        "machine": machine(),
        "run": folder.name,
        "parameters": sum(each.numel() for each in run.model.parameters()),
        "sentences": len(texts),
        "engines": found,
    }


def waits(run: Run, texts: Sequence[str], decoding: DecodingConfig) -> dict[str, float]:
    """Milliseconds for a text alone: the median, and what one in twenty takes at least."""

    jobs = [partial(run.predict, [text], TEXT_ONLY, decoding=decoding) for text in texts]
    for job in jobs[:WARM]:
        job()
    taken = sorted(1_000 * seconds(job) for job in jobs)
    return {
        "p50": round(statistics.median(taken), 2),
        "p95": round(taken[int(0.95 * len(taken))], 2),
    }


def machine() -> dict[str, Any]:
    return {
        "machine": platform.machine(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


TEXT = """*{processor}, {threads} threads; torch {torch}; `python -m bench.latency runs/{run} OUT.json {sentences}`.*

The run `{run}` ({parameters:.1f} M parameters) translates {sentences} sentences of its test split one at a time, text in and
text out: milliseconds, the median and what one sentence in twenty takes at least (p50 / p95).

| engine | {searches} |
|---|{lines}|
{rows}
"""


def table(results: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md."""
    rows = [
        f"| {engine} | "
        + " | ".join(f"{one['p50']:.1f} / {one['p95']:.1f}" for one in by_search.values())
        + " |"
        for engine, by_search in results["engines"].items()
    ]
    return TEXT.format(
        **results["machine"],
        run=results["run"],
        parameters=results["parameters"] / 1e6,
        sentences=results["sentences"],
        searches=" | ".join(DECODINGS),
        lines="|".join("---" for _ in DECODINGS),
        rows="\n".join(rows),
    )


if __name__ == "__main__":
    report = measure(Path(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 200)
    text = json.dumps(report, indent=2)
    print(text)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(f"{text}\n", encoding="utf-8")
