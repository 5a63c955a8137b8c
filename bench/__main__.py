"""Compare seqloom with other toolkits on this CPU. See bench/README.md."""

import argparse
import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import decoding_table, page, training_table
from bench.comparison.decoding import compare_decoding
from bench.comparison.prepare import MULTI30K, prepare
from bench.comparison.rounds import RoundPlan
from bench.comparison.systems import DECODING_PEERS, ROOT, TRAINING_PEERS, System
from bench.comparison.training import compare_training
from bench.comparison.workload import MODEL_KINDS, ModelKind, Workload
from bench.machine import describe_environment

WORK = ROOT / "bench" / ".work"
DRAFTS = WORK / "results"


def log(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {message}", file=sys.stderr, flush=True)


def main() -> None:
    arguments = parse_arguments()
    if arguments.what == "page":
        page.write()
        return
    data = str(MULTI30K) if arguments.data == "multi30k" else arguments.data
    is_tatoeba = data == "tatoeba"
    folder = prepare(data, WORK / ("tatoeba" if is_tatoeba else "multi30k"))
    facts = {
        "about": describe_environment(Workload.load(folder / "transformer.json").seed),
        "data": "Tatoeba German→English (bundled)" if is_tatoeba else "Multi30k German→English",
        "rounds": arguments.rounds,
    }
    out = page.RESULTS if arguments.write else DRAFTS
    out.mkdir(parents=True, exist_ok=True)
    if arguments.what in ("training", "all"):
        models = [arguments.model] if arguments.model else list(MODEL_KINDS)
        results = {model: measure_training(folder, model, arguments) for model in models}
        save(out / "training-cpu.json", {**facts, "models": results})
    if arguments.what in ("decoding", "all"):
        systems = measure_decoding(folder, arguments)
        save(out / "decoding-cpu.json", {**facts, "contenders": systems})
    if arguments.write:
        page.write()


def parse_arguments(arguments: Sequence[str] | None = None) -> Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", choices=["training", "decoding", "all", "page"])
    parser.add_argument(
        "--model", choices=MODEL_KINDS, help="model of the training comparison (default: all)"
    )
    parser.add_argument(
        "--data", default="multi30k", help="multi30k, tatoeba, or a folder with Multi30k's files"
    )
    keys = sorted({system.key for system in (*TRAINING_PEERS, *DECODING_PEERS)})
    parser.add_argument("--peers", nargs="*", choices=keys, help="peers to measure (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (default: 3)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="length of a time window (default: 5)"
    )
    parser.add_argument(
        "--together",
        type=int,
        default=3,
        help="number of peers in memory at the same time (default: 3)",
    )
    parser.add_argument(
        "--write", action="store_true", help="write the results and the page to docs"
    )
    parsed = parser.parse_args(arguments)
    if parsed.write and (parsed.model or parsed.peers is not None):
        parser.error("--write replaces complete tables: leave --model and --peers out")
    return parsed


def round_plan(arguments: Namespace, windows_per_round: int = 1) -> RoundPlan:
    lock = os.environ.get("BENCH_LOCK")
    return RoundPlan(
        arguments.rounds,
        arguments.seconds / windows_per_round,
        log,
        Path(lock) if lock else None,
    )


def select_peers(systems: Sequence[System], arguments: Namespace, model: str) -> list[System]:
    """The systems that support the model and that `--peers` allows."""
    return [
        system
        for system in systems
        if model in system.models and (arguments.peers is None or system.key in arguments.peers)
    ]


def measure_training(folder: Path, model: ModelKind, arguments: Namespace) -> list[dict[str, Any]]:
    """Measure the peers in groups of `--together`, each with seqloom and the ceiling."""
    peers = select_peers(TRAINING_PEERS, arguments, model)
    groups = []
    for start in range(0, max(len(peers), 1), arguments.together):
        group = peers[start : start + arguments.together]
        groups.append(compare_training(folder / f"{model}.json", group, round_plan(arguments)))
    print(f"\n{model}\n{training_table.table(groups)}\n", flush=True)
    return groups


def measure_decoding(folder: Path, arguments: Namespace) -> dict[str, Any]:
    from bench.peers.seqloom.random_run import random_run

    path = folder / "transformer.json"
    random_run(Workload.load(path))
    peers = select_peers(DECODING_PEERS, arguments, "transformer")
    # The four settings of a round share the time of one training window.
    results = compare_decoding(path, peers, round_plan(arguments, windows_per_round=4))
    print(f"\ndecoding\n{decoding_table.table(results)}\n", flush=True)
    return results


def save(path: Path, results: dict[str, Any]) -> None:
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
