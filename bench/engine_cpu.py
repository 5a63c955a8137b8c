"""The CTranslate2 engine of seqloom, compared with CTranslate2 alone and with torch on a CPU.

    seqloom train bench/recipes/engine-cpu.toml --run RUN --set data.folder=MULTI30K

trains the run of docs/benchmarks.md; any Transformer can be measured. "bare" is CTranslate2's
translate_batch on the same converted files, with tokens as input and its own batching; the engine
translates text to predictions. The two alternate, so that other load on the machine affects both.
Results of other machine architectures are kept.
"""

import argparse
import platform
import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.latency import DECODINGS, call_seconds, measure_latency
from bench.machine import describe_environment
from bench.tables import markdown, origin
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, EngineConfig, GreedyConfig
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.decoding.rules import default_max_length
from seqloom.inference.batching import CPU_BATCH_TOKENS
from seqloom.inference.engine.package import ctranslate2
from seqloom.inference.engine.translator import CTranslate2Engine
from seqloom.inference.options import TEXT_ONLY
from seqloom.inference.run import Run, load
from seqloom.metrics.bleu import bleu

ROUNDS = 11
PRECISIONS = ("int8", "float32")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path)
    parser.add_argument("--sentences", type=int, default=1_000, help="(default: 1000)")


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    report = measure_run(options.run, options.sentences)
    about = {**describe_environment(), "command": options.command}
    machine = {"about": {**about, "CTranslate2": ctranslate2().__version__}, **report}
    yield {**(options.earlier or {}), platform.machine(): machine}


def measure_run(folder: Path, sentences: int) -> dict[str, Any]:
    """All measurements of one run."""
    run = load(folder)
    pairs = list(read_split(run.config.data, "test"))
    examples = merge_references(pairs)[:sentences]
    texts = [example.source for example in examples]
    references = [example.references for example in examples]
    report: dict[str, Any] = {
        "run": folder.name,
        "sentences": len(texts),
    }
    for name, decoding in DECODINGS.items():
        engine = {key: _engine_call(run, key, texts, decoding) for key in PRECISIONS}
        bare = {key: _bare_call(run, key, texts, decoding) for key in PRECISIONS}
        torch_call = _engine_call(run, None, texts, decoding)
        outputs = {"torch": torch_call(), **{key: call() for key, call in engine.items()}}
        report[name] = {
            "bleu": {key: round(bleu(rows, references).value, 2) for key, rows in outputs.items()},
            "same as torch": {
                key: sum(map(str.__eq__, outputs["torch"], outputs[key])) for key in PRECISIONS
            },
            **_measure_speed(
                {
                    f"{label} {key}": calls[key]
                    for key in PRECISIONS
                    for label, calls in (("engine", engine), ("bare", bare))
                },
                len(texts),
            ),
            "torch seconds": round(call_seconds(torch_call), 2),
            "overhead": {},
        }
        seconds = report[name]["seconds"]
        for key in PRECISIONS:
            ratios = [
                engine_seconds / bare_seconds
                for engine_seconds, bare_seconds in zip(
                    seconds[f"engine {key}"], seconds[f"bare {key}"], strict=True
                )
            ]
            report[name]["overhead"][key] = {
                "ratio": round(statistics.median(ratios), 3),
                "from": round(min(ratios), 3),
                "to": round(max(ratios), 3),
            }
    report["latency_ms"] = {
        str(precision or "torch"): _greedy_latency(run, precision, texts[:60])
        for precision in (*PRECISIONS, None)
    }
    return report


def _engine_call(
    run: Run, precision: str | None, texts: Sequence[str], decoding: DecodingConfig
) -> Callable[[], list[str]]:
    """A function that translates the texts with an engine of seqloom."""
    config = _engine_config(precision)

    def call() -> list[str]:
        run.engine = config
        return [
            best[0].text
            for best in run.predict(
                texts, replace(TEXT_ONLY, split=False, pass_through=False), decoding=decoding
            )
        ]

    return call


def _engine_config(precision: str | None) -> EngineConfig:
    """CTranslate2 with this precision, or torch for None."""
    kind = "torch" if precision is None else "ctranslate2"
    return EngineConfig.model_validate({"kind": kind, "precision": precision or "auto"})


def _bare_call(
    run: Run, precision: str, texts: Sequence[str], decoding: DecodingConfig
) -> Callable[[], list[Any]]:
    """A function that calls CTranslate2 directly, with tokens as input and output."""
    engine = run.engines.choose(_engine_config(precision), decoding, TEXT_ONLY).engine
    assert isinstance(engine, CTranslate2Engine)
    sources = [run.task.prepare(text).source.tokens for text in texts]
    tokens = [
        [*[engine.token_names[token] for token in source], engine.token_names[2]]
        for source in sources
    ]
    width = decoding.width if isinstance(decoding, BeamConfig) else 1
    max_length = max(default_max_length(len(source), decoding) for source in sources)

    def call() -> list[Any]:
        return list(
            engine.translator.translate_batch(
                tokens,
                beam_size=width,
                max_batch_size=CPU_BATCH_TOKENS,
                batch_type="tokens",
                max_decoding_length=max_length,
            )
        )

    return call


def _measure_speed(calls: dict[str, Callable[[], list[Any]]], sentences: int) -> dict[str, Any]:
    """Time each call once per round. Compared calls are neighbours; their order alternates."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS):
        names = list(calls) if number % 2 == 0 else list(calls)[::-1]
        for name in names:
            seconds[name].append(round(call_seconds(calls[name]), 4))
    rates = {name: round(sentences / statistics.median(row), 1) for name, row in seconds.items()}
    return {"sentences per second": rates, "seconds": seconds}


def _greedy_latency(run: Run, precision: str | None, texts: Sequence[str]) -> dict[str, float]:
    run.engine = _engine_config(precision)
    return measure_latency(run, texts, GreedyConfig())


HEAD = "decoding;precision;BLEU (torch);outputs equal to torch;sentences/s;alone;time of the engine / alone"


def table(results: dict[str, Any]) -> str:
    """A table for each machine."""
    return "\n\n".join(_machine_table(results[name]) for name in results if name != "about")


def _machine_table(results: dict[str, Any]) -> str:
    rows = [_row(results, name, precision) for name in DECODINGS for precision in PRECISIONS]
    latency = ", ".join(
        f"{name} {times['p50']:.0f} / {times['p95']:.0f} ms"
        for name, times in results["latency_ms"].items()
    )
    last = f"Single sentences with greedy search, p50 / p95: {latency}."
    return "\n\n".join([origin(results["about"]), markdown(HEAD.split(";"), rows), last])


def _row(results: dict[str, Any], name: str, precision: str) -> list[str]:
    result = results[name]
    ratio, rates = result["overhead"][precision], result["sentences per second"]
    return [
        name,
        precision,
        f"{result['bleu'][precision]:.1f} ({result['bleu']['torch']:.1f})",
        f"{result['same as torch'][precision]}",
        f"{rates[f'engine {precision}']:.0f}",
        f"{rates[f'bare {precision}']:.0f}",
        f"{ratio['ratio']:.2f} ({ratio['from']:.2f}–{ratio['to']:.2f})",
    ]
