"""The rows of a comparison of decoders, from what the windows said."""

from typing import Any

from bench.rounds import Spread, ratios

COLUMNS = ("beam 5, batch 32", "greedy, batch 32", "beam 5, batch 1", "greedy, batch 1")
HEAD = "| | " + " | ".join(f"{one} (×)" for one in COLUMNS) + " | memory |\n|" + "---|" * 6


def speeds(contender: dict[str, Any], setting: str) -> list[float]:
    """Sentences a second, round by round."""
    return [one[setting]["sentences"] / one[setting]["seconds"] for one in contender["rounds"]]


def measured(results: dict[str, Any], setting: str) -> list[str]:
    """The fastest first."""
    found = [key for key, one in results.items() if "rounds" in one]
    return sorted(found, key=lambda key: faster(key, results, setting).median)


def faster(key: str, results: dict[str, Any], setting: str) -> Spread:
    """How many times as fast as this contender seqloom's compiled torch was."""
    return ratios(speeds(results["seqloom"], setting), speeds(results[key], setting))


def table(results: dict[str, Any]) -> str:
    """Fastest first; those that could not be measured last, with the reason."""
    rows = [_row(key, results) for key in measured(results, COLUMNS[0])]
    rows += [
        f"| {one['name']} | not measured: {one['reason']} | | | | |"
        for one in results.values()
        if "reason" in one
    ]
    return "\n".join([HEAD, *rows])


def _row(key: str, results: dict[str, Any]) -> str:
    one = results[key]
    cells = [_cell(key, results, setting) for setting in COLUMNS]
    memory = max(part["peak_memory_mb"] for turn in one["rounds"] for part in turn.values())
    name = f"{one['name']} {one['about']['version']}"
    return f"| {name} | {' | '.join(cells)} | {memory:,.0f} MB |"


def _cell(key: str, results: dict[str, Any], setting: str) -> str:
    """Sentences/s in batches, ms for one alone; and how many times as fast ours is."""
    speed = Spread.of(speeds(results[key], setting)).median
    value = f"{speed:,.1f}/s" if setting.endswith("32") else f"{1000 / speed:,.1f} ms"
    if key == "seqloom":
        return f"{value} (1)"
    spread = faster(key, results, setting)
    return f"{value} ({spread.median:.2f}, {spread.low:.2f}–{spread.high:.2f})"
