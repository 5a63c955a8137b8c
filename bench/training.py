"""Training, side by side: target tokens a second, padding, memory, share of the ceiling."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.contenders import CEILING, SEQLOOM, Contender
from bench.rounds import Plan, open_all, take_turns
from bench.workers import Broken, Worker
from bench.workload import Workload, matmul_flops, weights_met

WARM_UP_SECONDS = 4.0


def compare(path: Path, peers: Sequence[Contender], plan: Plan) -> dict[str, Any]:
    """Every round of every contender: {key: {about, rounds}} or {key: {reason}}."""
    contenders = [SEQLOOM, CEILING, *peers]
    logs = path.parent / "logs"
    logs.mkdir(exist_ok=True)
    makers = [partial(Worker, one, [str(path)], logs) for one in contenders]
    workers = open_all(makers, [one.key for one in contenders])
    try:
        for measure in (SEQLOOM, CEILING):
            if isinstance(reason := workers[measure.key], str):
                raise Broken(f"{measure.name}: {reason}")
        take_turns(workers, [{"seconds": WARM_UP_SECONDS}], Plan(rounds=1))
        answers = take_turns(workers, [{"seconds": plan.seconds}], plan)
    finally:
        for worker in workers.values():
            if isinstance(worker, Worker):
                worker.close()
    workload = Workload.load(path)
    result: dict[str, Any] = {}
    for one in contenders:
        worker, found = workers[one.key], answers[one.key]
        if isinstance(found, str) or isinstance(worker, str):
            result[one.key] = {"name": one.name, "reason": found}
            continue
        windows = [{**turn[0], "flops": flops(workload, one, turn[0])} for turn in found]
        result[one.key] = {"name": one.name, "about": worker.about, "rounds": windows}
    return result


def flops(workload: Workload, contender: Contender, window: dict[str, Any]) -> float:
    """What the window's real tokens need to have multiplied."""
    tokens = window["source_tokens"], window["target_tokens"]
    if contender is CEILING:
        return float(
            sum(6 * size * n for size, n in zip(weights_met(workload), tokens, strict=True))
        )
    return matmul_flops(workload, *tokens)
