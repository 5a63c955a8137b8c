"""The Markdown table of the decoding comparison."""

from typing import Any

from bench.comparison.rounds import Spread, ratio_spread

COLUMNS = ("beam 5, batch 32", "greedy, batch 32", "beam 5, batch 1", "greedy, batch 1")
HEAD = "| | " + " | ".join(f"{column} (×)" for column in COLUMNS) + " | memory |\n|" + "---|" * 6


def speeds(system: dict[str, Any], setting: str) -> list[float]:
    """Sentences per second in each round."""
    windows = [windows[setting] for windows in system["rounds"]]
    return [window["sentences"] / window["seconds"] for window in windows]


def measured_keys(results: dict[str, Any], setting: str) -> list[str]:
    """The keys of the measured systems, fastest first."""
    keys = [key for key, system in results.items() if "rounds" in system]
    return sorted(keys, key=lambda key: speed_up(key, results, setting).median)


def speed_up(key: str, results: dict[str, Any], setting: str) -> Spread:
    """The speed of seqloom's compiled engine divided by the speed of this system."""
    return ratio_spread(speeds(results["seqloom"], setting), speeds(results[key], setting))


def table(results: dict[str, Any]) -> str:
    """The fastest system first, systems without a measurement last, with the reason."""
    rows = [_row(key, results) for key in measured_keys(results, COLUMNS[0])]
    rows += [
        f"| {system['name']} | not measured: {system['reason']} | | | | |"
        for system in results.values()
        if "reason" in system
    ]
    return "\n".join([HEAD, *rows])


def _row(key: str, results: dict[str, Any]) -> str:
    system = results[key]
    cells = [_cell(key, results, setting) for setting in COLUMNS]
    memory = max(
        window["peak_memory_mb"] for windows in system["rounds"] for window in windows.values()
    )
    name = f"{system['name']} {system['about']['version']}"
    return f"| {name} | {' | '.join(cells)} | {memory:,.0f} MB |"


def _cell(key: str, results: dict[str, Any], setting: str) -> str:
    """Sentences/s for batches, ms for single sentences; then the speed-up of seqloom."""
    speed = Spread.from_values(speeds(results[key], setting)).median
    value = f"{speed:,.1f}/s" if setting.endswith("32") else f"{1000 / speed:,.1f} ms"
    if key == "seqloom":
        return f"{value} (1)"
    spread = speed_up(key, results, setting)
    return f"{value} ({spread.median:.2f}, {spread.low:.2f}–{spread.high:.2f})"
