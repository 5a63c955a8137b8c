"""Latency of single sentences on a CPU for each engine of a trained run.

Translates sentences of the run's test split one at a time, text in and text out. Loading, converting
and compiling happen before the measurement.
"""

import argparse
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.tables import markdown
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, EngineConfig, GreedyConfig
from seqloom.core.errors import ConfigError
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.inference.options import TEXT_ONLY
from seqloom.inference.run import Run, load

DECODINGS: dict[str, DecodingConfig] = {"greedy": GreedyConfig(), "beam 5": BeamConfig(width=5)}
ENGINES = ("torch", "compiled", "ctranslate2")
WARM_UP = 5
"""Number of sentences translated before the measurement."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--sentences", type=int, default=200, help="of the test split (default: 200)"
    )


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    """The latencies of every engine that supports the run, with every search."""
    run = load(options.run)
    examples = merge_references(list(read_split(run.config.data, "test")))[: options.sentences]
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
    yield {
        "run": options.run.name,
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


def call_seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def table(results: dict[str, Any]) -> str:
    rows = [
        [engine, *(f"{times['p50']:.1f} / {times['p95']:.1f}" for times in by_search.values())]
        for engine, by_search in results["engines"].items()
    ]
    lead = (
        f"The run `{results['run']}` ({results['parameters'] / 1e6:.1f} M parameters) translates "
        f"{results['sentences']} sentences of its test split.\n"
    )
    return "\n".join([lead, markdown(["engine", *DECODINGS], rows)])
