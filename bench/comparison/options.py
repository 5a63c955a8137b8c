"""What the comparisons of training and of decoding have in common: options, workers, origin."""

import argparse
import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.comparison.prepare import MULTI30K, prepare
from bench.comparison.rounds import (
    RoundPlan,
    close_workers,
    require_workers,
    run_rounds,
    start_workers,
)
from bench.comparison.systems import System
from bench.store import ROOT, STORE

WORK = ROOT / "bench" / ".work"


def add_common_options(parser: argparse.ArgumentParser, peers: Sequence[System]) -> None:
    parser.add_argument(
        "--data", default="multi30k", help="multi30k, tatoeba, or a folder with Multi30k's files"
    )
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=sorted(system.key for system in peers),
        help="peers to measure (default: all)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (default: 3)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="length of a time window (default: 5)"
    )


def check_complete(options: Namespace, *selections: object) -> None:
    """The store has complete tables only."""
    if options.out == STORE and any(selection is not None for selection in selections):
        sys.exit("--out bench/store replaces complete tables: leave --model and --peers out")


def prepared_folder(options: Namespace) -> Path:
    data = str(MULTI30K) if options.data == "multi30k" else options.data
    return prepare(data, WORK / ("tatoeba" if data == "tatoeba" else "multi30k"))


def describe_comparison(options: Namespace) -> dict[str, Any]:
    is_tatoeba = options.data == "tatoeba"
    data = "Tatoeba German→English (bundled)" if is_tatoeba else "Multi30k German→English"
    return {"data": data, "rounds": options.rounds}


def round_plan(options: Namespace, windows_per_round: int = 1) -> RoundPlan:
    lock = os.environ.get("BENCH_LOCK")
    seconds = options.seconds / windows_per_round
    return RoundPlan(options.rounds, seconds, log, Path(lock) if lock else None)


def log(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {message}", file=sys.stderr, flush=True)


def select_peers(systems: Sequence[System], options: Namespace, model: str) -> list[System]:
    """The systems that support the model and that `--peers` allows."""
    return [
        system
        for system in systems
        if model in system.models and (options.peers is None or system.key in options.peers)
    ]


def measure_systems(
    path: Path,
    required: Sequence[System],
    peers: Sequence[System],
    requests: Sequence[dict[str, Any]],
    plan: RoundPlan,
    warm_up: float | None = None,
) -> dict[str, Any]:
    """{key: {name, about, rounds}}, or {key: {name, reason}} for a system that failed.

    path:     the workload file
    required: systems without which there is no comparison
    warm_up:  length of a time window before the rounds
    """
    systems = [*required, *peers]
    logs = path.parent / "logs"
    logs.mkdir(exist_ok=True)
    workers = start_workers(systems, [str(path)], logs)
    try:
        require_workers(workers, required)
        if warm_up is not None:
            run_rounds(workers, [{"seconds": warm_up}], RoundPlan(rounds=1))
        responses = run_rounds(workers, requests, plan)
    finally:
        close_workers(workers)
    results: dict[str, Any] = {}
    for system in systems:
        worker, rounds = workers[system.key], responses[system.key]
        if isinstance(rounds, str) or isinstance(worker, str):
            results[system.key] = {"name": system.name, "reason": rounds}
        else:
            about = worker.description
            results[system.key] = {"name": system.name, "about": about, "rounds": rounds}
    return results


def describe_rounds(results: dict[str, Any]) -> str:
    return f"{results['data']}; median of {results['rounds']} rounds, lowest–highest.\n"
