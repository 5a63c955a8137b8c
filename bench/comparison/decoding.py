"""Decoding speed of seqloom and its peers on a CPU, in alternating time windows."""

import argparse
from argparse import Namespace
from collections.abc import Iterator
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
from bench.comparison.rounds import Spread, ratio_spread
from bench.comparison.systems import DECODING_PEERS, SEQLOOM_DECODING
from bench.comparison.workload import Workload
from bench.tables import markdown

SETTINGS = {
    "beam 5, batch 32": {"beam": 5, "batch": 32},
    "greedy, batch 32": {"beam": 1, "batch": 32},
    "beam 5, batch 1": {"beam": 5, "batch": 1},
    "greedy, batch 1": {"beam": 1, "batch": 1},
}
Systems = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    add_common_options(parser, DECODING_PEERS)


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    from bench.peers.seqloom_worker import random_run

    check_complete(options, options.peers)
    folder = prepared_folder(options)
    path = folder / "transformer.json"
    random_run(Workload.load(path))
    peers = select_peers(DECODING_PEERS, options, "transformer")
    # The four settings of a round share the time of one training window.
    plan = round_plan(options, windows_per_round=len(SETTINGS))
    requests = [{**setting, "seconds": plan.seconds} for setting in SETTINGS.values()]
    systems = measure_systems(path, [SEQLOOM_DECODING], peers, requests, plan)
    for system in systems.values():
        if "rounds" in system:
            windows = system["rounds"]
            system["rounds"] = [dict(zip(SETTINGS, each, strict=True)) for each in windows]
    yield {**describe_comparison(options), "contenders": systems}


def draw() -> None:
    picture.draw(store.read("training-cpu"), store.read("decoding-cpu"))


def table(results: dict[str, Any]) -> str:
    seconds = results["contenders"]["seqloom"]["about"]["seconds_to_prepare"]
    compiled = f"Compiling both searches of `--engine compiled` took {seconds:.0f} s.\n"
    return "\n".join([describe_rounds(results), compiled, speed_table(results["contenders"])])


def speeds(system: dict[str, Any], setting: str) -> list[float]:
    """Sentences per second in each round."""
    windows = [windows[setting] for windows in system["rounds"]]
    return [window["sentences"] / window["seconds"] for window in windows]


def measured_keys(systems: Systems, setting: str) -> list[str]:
    """The keys of the measured systems, fastest first."""
    keys = [key for key, system in systems.items() if "rounds" in system]
    return sorted(keys, key=lambda key: speed_up(key, systems, setting).median)


def speed_up(key: str, systems: Systems, setting: str) -> Spread:
    """The speed of seqloom's compiled engine divided by the speed of this system."""
    return ratio_spread(speeds(systems["seqloom"], setting), speeds(systems[key], setting))


def speed_table(systems: Systems) -> str:
    """The fastest system first, systems without a measurement last, with the reason."""
    rows = []
    for key in measured_keys(systems, "beam 5, batch 32"):
        system = systems[key]
        windows = [window for each in system["rounds"] for window in each.values()]
        memory = max(window["peak_memory_mb"] for window in windows)
        cells = [cell(key, systems, setting) for setting in SETTINGS]
        rows.append([f"{system['name']} {system['about']['version']}", *cells, f"{memory:,.0f} MB"])
    rows += [
        [system["name"], f"not measured: {system['reason']}", "", "", "", ""]
        for system in systems.values()
        if "reason" in system
    ]
    return markdown(["", *(f"{setting} (×)" for setting in SETTINGS), "memory"], rows)


def cell(key: str, systems: Systems, setting: str) -> str:
    """Sentences/s for batches, ms for single sentences; then the speed-up of seqloom."""
    speed = Spread.from_values(speeds(systems[key], setting)).median
    value = f"{speed:,.1f}/s" if setting.endswith("32") else f"{1000 / speed:,.1f} ms"
    if key == "seqloom":
        return f"{value} (1)"
    spread = speed_up(key, systems, setting)
    return f"{value} ({spread.median:.2f}, {spread.low:.2f}–{spread.high:.2f})"
