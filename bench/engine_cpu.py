"""The CPU engine against CTranslate2 itself and against torch: speed, latency, quality.

    seqloom train bench/engine_cpu.toml --run RUN --set data.folder=MULTI30K
    python -m bench.engine_cpu RUN [OUT.json] [SENTENCES]

The run may be any Transformer; its own test split is translated. "bare" is CTranslate2's
translate_batch on the same converted files, given ready tokens and its own batching; the engine
gets text and gives predictions. The two take turns, so that a machine that gets busy slows them
alike. OUT.json keeps what it holds of other kinds of machines.
"""

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.latency import DECODINGS, machine, seconds, waits
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, EngineConfig, GreedyConfig
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.decoding.rules import default_max_length
from seqloom.metrics.bleu import bleu
from seqloom.runs.batching import CPU_BATCH_TOKENS
from seqloom.runs.engine.package import ctranslate2
from seqloom.runs.engine.translator import CTranslate2Engine
from seqloom.runs.options import TEXT_ONLY
from seqloom.runs.run import Run, load

ROUNDS = 11
PRECISIONS = ("int8", "float32")


def measure(folder: Path, sentences: int = 1_000) -> dict[str, Any]:
    """Everything there is to say about the engines of one run."""
    run = load(folder)
    pairs = list(read_split(run.config.data, "test"))
    examples = merge_references(pairs)[:sentences]
    texts = [example.source for example in examples]
    references = [example.references for example in examples]
    report: dict[str, Any] = {"machine": _machine(), "run": folder.name, "sentences": len(texts)}
    for name, decoding in DECODINGS.items():
        ours = {precision: _ours(run, precision, texts, decoding) for precision in PRECISIONS}
        bare = {precision: _bare(run, precision, texts, decoding) for precision in PRECISIONS}
        by_torch = _ours(run, None, texts, decoding)
        outputs = {"torch": by_torch(), **{key: job() for key, job in ours.items()}}
        report[name] = {
            "bleu": {key: round(bleu(rows, references).value, 2) for key, rows in outputs.items()},
            "same as torch": {
                key: sum(map(str.__eq__, outputs["torch"], outputs[key])) for key in PRECISIONS
            },
            **_speed(
                {
                    f"{who} {key}": jobs[key]
                    for key in PRECISIONS
                    for who, jobs in (("engine", ours), ("bare", bare))
                },
                len(texts),
            ),
            "torch seconds": round(seconds(by_torch), 2),
            "overhead": {},
        }
        taken = report[name]["seconds"]
        for key in PRECISIONS:
            ratios = [
                mine / other
                for mine, other in zip(taken[f"engine {key}"], taken[f"bare {key}"], strict=True)
            ]
            report[name]["overhead"][key] = {
                "ratio": round(statistics.median(ratios), 3),
                "from": round(min(ratios), 3),
                "to": round(max(ratios), 3),
            }
    report["latency_ms"] = {
        str(precision or "torch"): _latency(run, precision, texts[:60])
        for precision in (*PRECISIONS, None)
    }
    return report


def _ours(
    run: Run, precision: str | None, texts: Sequence[str], decoding: DecodingConfig
) -> Callable[[], list[str]]:
    """Texts in, texts out."""
    settings = _settings(precision)

    def job() -> list[str]:
        run.engine = settings
        return [best[0].text for best in run.predict(texts, TEXT_ONLY, decoding=decoding)]

    return job


def _settings(precision: str | None) -> EngineConfig:
    """CTranslate2 with this precision; None: torch."""
    kind = "torch" if precision is None else "ctranslate2"
    return EngineConfig.model_validate({"kind": kind, "precision": precision or "auto"})


def _bare(
    run: Run, precision: str, texts: Sequence[str], decoding: DecodingConfig
) -> Callable[[], list[Any]]:
    """Tokens in, tokens out, as CTranslate2's own users call it."""
    engine = run.engines.choose(_settings(precision), decoding, TEXT_ONLY).engine
    assert isinstance(engine, CTranslate2Engine)
    prepared = [run.task.prepare(text).source or () for text in texts]
    tokens = [[*[engine.names[token] for token in row], engine.names[2]] for row in prepared]
    width = decoding.width if isinstance(decoding, BeamConfig) else 1

    longest = max(default_max_length(len(row), decoding) for row in prepared)

    def job() -> list[Any]:
        return list(
            engine.translator.translate_batch(
                tokens,
                beam_size=width,
                max_batch_size=CPU_BATCH_TOKENS,
                batch_type="tokens",
                max_decoding_length=longest,
            )
        )

    return job


def _speed(jobs: dict[str, Callable[[], list[Any]]], sentences: int) -> dict[str, Any]:
    """Each job once a round, those to be compared beside each other and each first in turn."""
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for round_ in range(ROUNDS):
        names = list(jobs) if round_ % 2 == 0 else list(jobs)[::-1]
        for name in names:
            taken[name].append(round(seconds(jobs[name]), 4))
    rates = {name: round(sentences / statistics.median(row), 1) for name, row in taken.items()}
    return {"sentences per second": rates, "seconds": taken}


def _latency(run: Run, precision: str | None, texts: Sequence[str]) -> dict[str, float]:
    """One sentence at a time, greedily."""
    run.engine = _settings(precision)
    return waits(run, texts, GreedyConfig())


def _machine() -> dict[str, Any]:
    return {**machine(), "ctranslate2": ctranslate2().__version__}


TEXT = """A Transformer of 4+4 layers of 256, trained on Multi30k German→English by `bench/engine_cpu.toml`, translates some of
its test split. "Alone" is CTranslate2's own `translate_batch` on the same files in the same process, with ready tokens
in and tokens out; the engine gets text and gives text. The two take turns; the ratio is the median of {rounds} rounds, with
lowest and highest.
"""
TABLE = """
*{machine}: {processor}; {threads} threads; torch {torch}, CTranslate2 {ctranslate2};
`python -m bench.engine_cpu RUN OUT.json {sentences}`.*

| decoding | precision | BLEU (torch's) | outputs as torch's | sentences/s | alone | engine takes … times as long |
|---|---|---|---|---|---|---|
{rows}

One sentence at a time, greedily, p50 / p95: {latency}.
"""


def table(results: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md: a table for each kind of machine."""
    return TEXT.format(rounds=ROUNDS) + "".join(map(_table, results.values()))


def _table(results: dict[str, Any]) -> str:
    rows = [_row(results, name, precision) for name in DECODINGS for precision in PRECISIONS]
    latency = ", ".join(
        f"{name} {one['p50']:.0f} / {one['p95']:.0f} ms"
        for name, one in results["latency_ms"].items()
    )
    return TABLE.format(
        rows="\n".join(rows),
        latency=latency,
        sentences=results["sentences"],
        **results["machine"],
    )


def _row(results: dict[str, Any], name: str, precision: str) -> str:
    one = results[name]
    ratio, rates = one["overhead"][precision], one["sentences per second"]
    return (
        f"| {name} | {precision} | {one['bleu'][precision]:.1f} ({one['bleu']['torch']:.1f}) "
        f"| {one['same as torch'][precision]} | {rates[f'engine {precision}']:.0f} "
        f"| {rates[f'bare {precision}']:.0f} "
        f"| {ratio['ratio']:.2f} ({ratio['from']:.2f}–{ratio['to']:.2f}) |"
    )


if __name__ == "__main__":
    found = measure(Path(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 1_000)
    print(json.dumps(found, indent=2))
    if len(sys.argv) > 2:
        out = Path(sys.argv[2])
        others = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        text = json.dumps({**others, found["machine"]["machine"]: found}, indent=2)
        out.write_text(f"{text}\n", encoding="utf-8")
