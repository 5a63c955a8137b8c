"""The rows of a comparison of training loops, from what the windows said.

Contenders are measured in groups, seqloom and the ceiling in each of them: memory is bounded, and
a ratio is always one of windows that lay side by side.
"""

from collections.abc import Sequence
from typing import Any

from bench.rounds import Spread, ratios

Group = dict[str, Any]
HEAD = (
    "| | target tokens/s | seqloom is … times as fast | padding source / target "
    "| share of the ceiling | memory |\n|---|---|---|---|---|---|"
)
SITES = "| | parameters | loop | batches | dropout |\n|---|---|---|---|---|"


def speeds(contender: dict[str, Any]) -> list[float]:
    return [one["target_tokens"] / one["seconds"] for one in contender["rounds"]]


def rates(contender: dict[str, Any]) -> list[float]:
    """Floating point operations a second."""
    return [one["flops"] / one["seconds"] for one in contender["rounds"]]


def padding(rounds: Sequence[dict[str, Any]], side: str) -> float:
    """The share of a side's positions that hold nothing."""
    tokens = sum(one[f"{side}_tokens"] for one in rounds)
    return 1 - tokens / sum(one[f"{side}_positions"] for one in rounds)


def measured(groups: Sequence[Group]) -> list[tuple[str, Group]]:
    """(key, its group), the fastest first; seqloom once, as it was in the first group."""
    found = {
        key: group
        for group in reversed(groups)
        for key, one in group.items()
        if "rounds" in one and key != "ceiling"
    }
    return sorted(found.items(), key=lambda item: faster(*item).median)


def faster(key: str, group: Group) -> Spread:
    """How many times as fast as this contender seqloom was, beside it."""
    return ratios(speeds(group["seqloom"]), speeds(group[key]))


def table(groups: Sequence[Group]) -> str:
    """Fastest first; those that could not be measured last, with the reason."""
    rows = [_row(key, group) for key, group in measured(groups)]
    rows += [
        f"| {one['name']} | not measured: {one['reason']} | | | | |"
        for group in groups
        for one in group.values()
        if "reason" in one
    ]
    return "\n".join([HEAD, *rows])


def sites(groups: Sequence[Group]) -> str:
    """What each of them is, in its own words."""
    rows = []
    for key, group in measured(groups):
        about = group[key]["about"]
        rows.append(
            f"| {group[key]['name']} | {about['parameters'] / 1e6:.1f} M | `{about['loop']}` "
            f"| {about['batching']} | {about['dropout']} |"
        )
    return "\n".join([SITES, *rows])


def _row(key: str, group: Group) -> str:
    one = group[key]
    share = ratios(rates(one), rates(group["ceiling"])).median
    spread = faster(key, group)
    against = "1" if key == "seqloom" else told(spread)
    sides = " / ".join(f"{100 * padding(one['rounds'], side):.1f}" for side in ("source", "target"))
    memory = max(turn["peak_memory_mb"] for turn in one["rounds"]) / 1000
    return (
        f"| {one['name']} {one['about']['version']} | {Spread.of(speeds(one)).median:,.0f} "
        f"| {against} | {sides} % | {100 * share:.0f} % | {memory:.1f} GB |"
    )


def told(spread: Spread) -> str:
    return f"**{spread.median:.2f}** ({spread.low:.2f}–{spread.high:.2f})"
