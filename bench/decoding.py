"""Decoding, side by side: sentences a second and milliseconds a sentence."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.contenders import SEQLOOM_DECODING, Contender
from bench.rounds import Plan, open_all, take_turns
from bench.workers import Broken, Worker

SETTINGS = {
    "beam 5, batch 32": {"beam": 5, "batch": 32},
    "greedy, batch 32": {"beam": 1, "batch": 32},
    "beam 5, batch 1": {"beam": 5, "batch": 1},
    "greedy, batch 1": {"beam": 1, "batch": 1},
}


def compare(path: Path, peers: Sequence[Contender], plan: Plan) -> dict[str, Any]:
    """{key: {name, about, rounds: [{setting: {sentences, seconds}}]}} or {key: {name, reason}}."""
    contenders = [SEQLOOM_DECODING, *peers]
    logs = path.parent / "logs"
    logs.mkdir(exist_ok=True)
    makers = [partial(Worker, one, [str(path), *one.arguments], logs) for one in contenders]
    workers = open_all(makers, [one.key for one in contenders])
    requests = [{**setting, "seconds": plan.seconds} for setting in SETTINGS.values()]
    try:
        if isinstance(reason := workers[SEQLOOM_DECODING.key], str):
            raise Broken(f"seqloom: {reason}")
        answers = take_turns(workers, requests, plan)
    finally:
        for worker in workers.values():
            if isinstance(worker, Worker):
                worker.close()
    result: dict[str, Any] = {}
    for one in contenders:
        worker, found = workers[one.key], answers[one.key]
        if isinstance(found, str) or isinstance(worker, str):
            result[one.key] = {"name": one.name, "reason": found}
            continue
        turns = [dict(zip(SETTINGS, turn, strict=True)) for turn in found]
        result[one.key] = {"name": one.name, "about": worker.about, "rounds": turns}
    return result
