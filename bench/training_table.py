"""The rows of a comparison of training loops, from what the windows said."""

from collections.abc import Sequence
from typing import Any

from bench.rounds import Spread, ratios

HEAD = (
    "| | target tokens/s | seqloom is … times as fast | padding source / target "
    "| share of the ceiling | memory |\n|---|---|---|---|---|---|"
)


def speeds(contender: dict[str, Any]) -> list[float]:
    return [one["target_tokens"] / one["seconds"] for one in contender["rounds"]]


def rates(contender: dict[str, Any]) -> list[float]:
    """Floating point operations a second."""
    return [one["flops"] / one["seconds"] for one in contender["rounds"]]


def padding(rounds: Sequence[dict[str, Any]], side: str) -> float:
    """The share of a side's positions that hold nothing."""
    tokens = sum(one[f"{side}_tokens"] for one in rounds)
    return 1 - tokens / sum(one[f"{side}_positions"] for one in rounds)


def table(results: dict[str, Any]) -> str:
    """Fastest first; those that could not be measured last, with the reason."""
    measured = {key: one for key, one in results.items() if "rounds" in one and key != "ceiling"}
    order = sorted(measured, key=lambda key: -Spread.of(speeds(measured[key])).median)
    rows = [_row(key, results) for key in order]
    rows += [
        f"| {one['name']} | not measured: {one['reason']} | | | | |"
        for one in results.values()
        if "reason" in one
    ]
    return "\n".join([HEAD, *rows])


def _row(key: str, results: dict[str, Any]) -> str:
    one = results[key]
    share = ratios(rates(one), rates(results["ceiling"])).median
    faster = ratios(speeds(results["seqloom"]), speeds(one))
    against = (
        "1" if key == "seqloom" else f"{faster.median:.2f} ({faster.low:.2f}–{faster.high:.2f})"
    )
    sides = " / ".join(f"{100 * padding(one['rounds'], side):.1f}" for side in ("source", "target"))
    memory = max(turn["peak_memory_mb"] for turn in one["rounds"]) / 1000
    return (
        f"| {one['name']} {one['about']['version']} | {Spread.of(speeds(one)).median:,.0f} "
        f"| {against} | {sides} % | {100 * share:.0f} % | {memory:.1f} GB |"
    )
