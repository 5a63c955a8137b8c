"""Training speed of seqloom, its peers and the ceiling on a CPU, in alternating time windows.

Systems are measured in groups, because memory is limited. Each group includes seqloom and the
ceiling, and ratios are taken within a group.
"""

import argparse
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import store
from bench.comparison import picture
from bench.comparison.options import (
    add_common_options,
    check_complete,
    describe_comparison,
    describe_rounds,
    measure_systems,
    prepared_folder,
    round_plan,
    select_peers,
)
from bench.comparison.rounds import RoundPlan, Spread, ratio_spread
from bench.comparison.systems import CEILING, SEQLOOM, TRAINING_PEERS, System
from bench.comparison.workload import MODEL_KINDS, Workload, matmul_flops, weights_per_token
from bench.tables import markdown

WARM_UP_SECONDS = 4.0
MODELS = {
    "transformer": "Transformer, 3+3 layers of width 256, 4 heads, feed-forward 1024",
    "recurrent": "One-layer bidirectional GRU with attention, width 512, without input feeding",
    "recurrent-feeding": "The same with input feeding",
}
Group = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    add_common_options(parser, TRAINING_PEERS)
    parser.add_argument("--model", choices=MODEL_KINDS, help="default: all")
    parser.add_argument(
        "--together",
        type=int,
        default=3,
        help="number of peers in memory at the same time (default: 3)",
    )


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    check_complete(options, options.model, options.peers)
    folder = prepared_folder(options)
    models: dict[str, list[Group]] = {}
    for model in [options.model] if options.model else MODEL_KINDS:
        peers = select_peers(TRAINING_PEERS, options, model)
        models[model] = [
            compare(
                folder / f"{model}.json",
                peers[start : start + options.together],
                round_plan(options),
            )
            for start in range(0, max(len(peers), 1), options.together)
        ]
    yield {**describe_comparison(options), "models": models}


def compare(path: Path, peers: Sequence[System], plan: RoundPlan) -> Group:
    """The results of one group.

    path: the workload file
    """
    requests = [{"seconds": plan.seconds}]
    results = measure_systems(path, [SEQLOOM, CEILING], peers, requests, plan, WARM_UP_SECONDS)
    workload = Workload.load(path)
    for key, system in results.items():
        if "rounds" in system:
            system["rounds"] = [
                {**window, "flops": flops(workload, key, window)} for [window] in system["rounds"]
            ]
    return results


def flops(workload: Workload, key: str, window: dict[str, Any]) -> float:
    """Floating point operations of the matrix products for the real tokens of a time window."""
    tokens = window["source_tokens"], window["target_tokens"]
    if key == CEILING.key:
        weights = weights_per_token(workload)
        return float(sum(6 * size * count for size, count in zip(weights, tokens, strict=True)))
    return matmul_flops(workload, *tokens)


def draw() -> None:
    picture.draw(store.read("training-cpu"), store.read("decoding-cpu"))


def table(results: dict[str, Any], sites: str = "sites") -> str:
    """The speeds for each model, and with `sites` what the systems do differently."""
    parts = [describe_rounds(results)]
    for model, groups in results["models"].items():
        parts.append(f"**{MODELS[model]}**\n\n{speed_table(groups)}\n")
        if sites == "sites":
            parts.append(f"{sites_table(groups)}\n")
    return "\n".join(parts)


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


def speed_table(groups: Sequence[Group]) -> str:
    """The fastest system first, systems without a measurement last, with the reason."""
    rows = [speed_row(key, group) for key, group in measured_systems(groups)]
    rows += [
        [system["name"], f"not measured: {system['reason']}", "", "", "", ""]
        for group in groups
        for system in group.values()
        if "reason" in system
    ]
    head = ["", "target tokens/s", "speed-up of seqloom", "padding source / target"]
    return markdown([*head, "share of the ceiling", "memory"], rows)


def speed_row(key: str, group: Group) -> list[str]:
    system = group[key]
    ceiling_share = ratio_spread(flop_rates(system), flop_rates(group["ceiling"])).median
    spread = speed_up(key, group)
    ratio = f"**{spread.median:.2f}** ({spread.low:.2f}–{spread.high:.2f})"
    padding = " / ".join(
        f"{100 * padding_share(system['rounds'], side):.1f}" for side in ("source", "target")
    )
    memory = max(window["peak_memory_mb"] for window in system["rounds"]) / 1000
    return [
        f"{system['name']} {system['about']['version']}",
        f"{Spread.from_values(speeds(system)).median:,.0f}",
        "1" if key == "seqloom" else ratio,
        f"{padding} %",
        f"{100 * ceiling_share:.0f} %",
        f"{memory:.1f} GB",
    ]


def sites_table(groups: Sequence[Group]) -> str:
    """Parameters, training loop, batching and places of dropout of each system."""
    rows = []
    for key, group in measured_systems(groups):
        about = group[key]["about"]
        parameters = f"{about['parameters'] / 1e6:.1f} M"
        loop = f"`{about['loop']}`"
        rows.append([group[key]["name"], parameters, loop, about["batching"], about["dropout"]])
    return markdown(["", "parameters", "loop", "batches", "dropout"], rows)
