"""Measure the decoding speed of seqloom and its peers in alternating time windows."""

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
from bench.comparison.systems import SEQLOOM_DECODING, System

SETTINGS = {
    "beam 5, batch 32": {"beam": 5, "batch": 32},
    "greedy, batch 32": {"beam": 1, "batch": 32},
    "beam 5, batch 1": {"beam": 5, "batch": 1},
    "greedy, batch 1": {"beam": 1, "batch": 1},
}


def compare_decoding(path: Path, peers: Sequence[System], plan: RoundPlan) -> dict[str, Any]:
    """{key: {name, about, rounds: [{setting: {sentences, seconds}}]}}, or {key: {name, reason}}.

    path: the workload file
    """
    systems = [SEQLOOM_DECODING, *peers]
    logs = path.parent / "logs"
    logs.mkdir(exist_ok=True)
    workers = start_workers(systems, [str(path)], logs)
    requests = [{**setting, "seconds": plan.seconds} for setting in SETTINGS.values()]
    try:
        require_workers(workers, (SEQLOOM_DECODING,))
        responses = run_rounds(workers, requests, plan)
    finally:
        close_workers(workers)
    results: dict[str, Any] = {}
    for system in systems:
        worker, rounds = workers[system.key], responses[system.key]
        if isinstance(rounds, str) or isinstance(worker, str):
            results[system.key] = {"name": system.name, "reason": rounds}
            continue
        results[system.key] = {
            "name": system.name,
            "about": worker.description,
            "rounds": [dict(zip(SETTINGS, windows, strict=True)) for windows in rounds],
        }
    return results
