"""The Markdown tables of the training comparison.

Systems are measured in groups, because memory is limited. Each group includes seqloom and the
ceiling, and ratios are taken within a group.
"""

from collections.abc import Sequence
from typing import Any

from bench.comparison.rounds import Spread, ratio_spread

Group = dict[str, Any]
HEAD = (
    "| | target tokens/s | speed-up of seqloom | padding source / target "
    "| share of the ceiling | memory |\n|---|---|---|---|---|---|"
)
SITES = "| | parameters | loop | batches | dropout |\n|---|---|---|---|---|"


def speeds(system: dict[str, Any]) -> list[float]:
    """Target tokens per second in each round."""
    return [window["target_tokens"] / window["seconds"] for window in system["rounds"]]


def flop_rates(system: dict[str, Any]) -> list[float]:
    """Floating point operations per second in each round."""
    return [window["flops"] / window["seconds"] for window in system["rounds"]]


def padding_share(windows: Sequence[dict[str, Any]], side: str) -> float:
    """The share of padding among the positions of a side."""
    tokens = sum(window[f"{side}_tokens"] for window in windows)
    return 1 - tokens / sum(window[f"{side}_positions"] for window in windows)


def measured_systems(groups: Sequence[Group]) -> list[tuple[str, Group]]:
    """(key, group) of the measured systems, fastest first; seqloom once, from the first group."""
    group_of = {
        key: group
        for group in reversed(groups)
        for key, system in group.items()
        if "rounds" in system and key != "ceiling"
    }
    return sorted(group_of.items(), key=lambda item: speed_up(*item).median)


def speed_up(key: str, group: Group) -> Spread:
    """The speed of seqloom divided by the speed of this system, within a group."""
    return ratio_spread(speeds(group["seqloom"]), speeds(group[key]))


def table(groups: Sequence[Group]) -> str:
    """The fastest system first, systems without a measurement last, with the reason."""
    rows = [_row(key, group) for key, group in measured_systems(groups)]
    rows += [
        f"| {system['name']} | not measured: {system['reason']} | | | | |"
        for group in groups
        for system in group.values()
        if "reason" in system
    ]
    return "\n".join([HEAD, *rows])


def sites(groups: Sequence[Group]) -> str:
    """Parameters, training loop, batching and places of dropout of each system."""
    rows = []
    for key, group in measured_systems(groups):
        about = group[key]["about"]
        rows.append(
            f"| {group[key]['name']} | {about['parameters'] / 1e6:.1f} M | `{about['loop']}` "
            f"| {about['batching']} | {about['dropout']} |"
        )
    return "\n".join([SITES, *rows])


def _row(key: str, group: Group) -> str:
    system = group[key]
    ceiling_share = ratio_spread(flop_rates(system), flop_rates(group["ceiling"])).median
    ratio = "1" if key == "seqloom" else format_spread(speed_up(key, group))
    padding = " / ".join(
        f"{100 * padding_share(system['rounds'], side):.1f}" for side in ("source", "target")
    )
    memory = max(window["peak_memory_mb"] for window in system["rounds"]) / 1000
    speed = Spread.from_values(speeds(system)).median
    return (
        f"| {system['name']} {system['about']['version']} | {speed:,.0f} "
        f"| {ratio} | {padding} % | {100 * ceiling_share:.0f} % | {memory:.1f} GB |"
    )


def format_spread(spread: Spread) -> str:
    return f"**{spread.median:.2f}** ({spread.low:.2f}–{spread.high:.2f})"
