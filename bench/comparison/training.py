"""Measure the training speed of seqloom, its peers and the ceiling in alternating time windows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.comparison.rounds import (
    RoundPlan,
    close_workers,
    require_workers,
    run_rounds,
    start_workers,
)
from bench.comparison.systems import CEILING, SEQLOOM, System
from bench.comparison.workload import Workload, matmul_flops, weights_per_token

WARM_UP_SECONDS = 4.0


def compare_training(path: Path, peers: Sequence[System], plan: RoundPlan) -> dict[str, Any]:
    """{key: {name, about, rounds}}, or {key: {name, reason}} for a system that failed.

    path: the workload file
    """
    systems = [SEQLOOM, CEILING, *peers]
    logs = path.parent / "logs"
    logs.mkdir(exist_ok=True)
    workers = start_workers(systems, [str(path)], logs)
    try:
        require_workers(workers, (SEQLOOM, CEILING))
        run_rounds(workers, [{"seconds": WARM_UP_SECONDS}], RoundPlan(rounds=1))
        responses = run_rounds(workers, [{"seconds": plan.seconds}], plan)
    finally:
        close_workers(workers)
    workload = Workload.load(path)
    results: dict[str, Any] = {}
    for system in systems:
        worker, rounds = workers[system.key], responses[system.key]
        if isinstance(rounds, str) or isinstance(worker, str):
            results[system.key] = {"name": system.name, "reason": rounds}
            continue
        windows = [{**window, "flops": flops(workload, system, window)} for [window] in rounds]
        results[system.key] = {
            "name": system.name,
            "about": worker.description,
            "rounds": windows,
        }
    return results


def flops(workload: Workload, system: System, window: dict[str, Any]) -> float:
    """Floating point operations of the matrix products for the real tokens of a time window."""
    tokens = window["source_tokens"], window["target_tokens"]
    if system is CEILING:
        weights = weights_per_token(workload)
        return float(sum(6 * size * count for size, count in zip(weights, tokens, strict=True)))
    return matmul_flops(workload, *tokens)
