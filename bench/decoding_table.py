"""The rows of a comparison of decoders, from what the windows said."""

from typing import Any

from bench.rounds import Spread, ratios

COLUMNS = ("beam 5, batch 32", "greedy, batch 32", "beam 5, batch 1", "greedy, batch 1")
HEAD = "| | " + " | ".join(f"{one} (×)" for one in COLUMNS) + " | memory |\n|" + "---|" * 6


def speeds(contender: dict[str, Any], setting: str) -> list[float]:
    """Sentences a second, round by round."""
    return [one[setting]["sentences"] / one[setting]["seconds"] for one in contender["rounds"]]


def table(results: dict[str, Any]) -> str:
    """Fastest first; those that could not be measured last, with the reason."""
    measured = [key for key, one in results.items() if "rounds" in one]
    order = sorted(measured, key=lambda key: -Spread.of(speeds(results[key], COLUMNS[0])).median)
    rows = [_row(key, results) for key in order]
    rows += [
        f"| {one['name']} | not measured: {one['reason']} | | | | |"
        for one in results.values()
        if "reason" in one
    ]
    return "\n".join([HEAD, *rows])


def _row(key: str, results: dict[str, Any]) -> str:
    one = results[key]
    cells = [_cell(one, results["seqloom"], setting, key == "seqloom") for setting in COLUMNS]
    memory = max(part["peak_memory_mb"] for turn in one["rounds"] for part in turn.values())
    name = f"{one['name']} {one['about']['version']}"
    return f"| {name} | {' | '.join(cells)} | {memory:,.0f} MB |"


def _cell(one: dict[str, Any], ours: dict[str, Any], setting: str, own: bool) -> str:
    """Sentences/s in batches, ms for one alone; and how many times as fast seqloom's torch is."""
    speed = Spread.of(speeds(one, setting)).median
    value = f"{speed:,.1f}/s" if setting.endswith("32") else f"{1000 / speed:,.1f} ms"
    if own:
        return f"{value} (1)"
    faster = ratios(speeds(ours, setting), speeds(one, setting))
    return f"{value} ({faster.median:.2f}, {faster.low:.2f}–{faster.high:.2f})"
