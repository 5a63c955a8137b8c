"""Throughput of `seqloom serve --workers`.

A server with one worker and a server with several workers are measured in turn. They alternate, so
that other load on the machine affects both. The CPU time per request does not depend on
other load: it gives the largest speed-up that the cores of the machine allow.
"""

import argparse
import statistics
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.serving.service import measure_throughput, server_process
from bench.tables import markdown


def measure_run(
    folder: Path, workers: int, clients: int, rounds: int, count: int
) -> dict[str, Any]:
    import seqloom
    from seqloom.data.readers.splits import read_split
    from seqloom.inference.options import TEXT_ONLY

    run = seqloom.load(folder)
    texts = list(dict.fromkeys(example.source for example in read_split(run.config.data, "test")))
    rates: dict[str, list[float]] = {"1": [], str(workers): []}
    with (
        server_process(folder) as one_server,
        server_process(folder, "--workers", str(workers)) as many_server,
    ):
        servers = dict(zip(rates, (one_server, many_server), strict=True))
        for server in servers.values():
            measure_throughput(server.port, texts[: 4 * clients], clients)
        before = {name: server.cpu_seconds() for name, server in servers.items()}
        client_before = time.process_time()
        for number in range(rounds):
            batch = texts[number * count : (number + 1) * count]
            answers = []
            for name, server in servers.items():
                rate, translations = measure_throughput(server.port, batch, clients)
                rates[name].append(rate)
                answers.append(translations)
            assert answers[0] == answers[1], "the number of workers changed a translation"
        client_seconds = (time.process_time() - client_before) / 2
        seconds = {name: server.cpu_seconds() - before[name] for name, server in servers.items()}
    requests = len(texts[: rounds * count])
    one_rates, many_rates = rates.values()
    ratios = [many / one for one, many in zip(one_rates, many_rates, strict=True)]
    return {
        "run": folder.name,
        "engine": run.engines.choose(run.engine, run.config.decoding, TEXT_ONLY).name,
        "workers": workers,
        "clients": clients,
        "requests": requests,
        "requests_a_second": rates,
        "times_faster": ratios,
        "times_faster_median": statistics.median(ratios),
        "server_cpu_ms_a_request": {name: 1000 * used / requests for name, used in seconds.items()},
        "client_cpu_ms_a_request": 1000 * client_seconds / requests,
        "equal_answers": True,
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--requests", type=int, default=230, help="requests per round")


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    settings = (options.workers, options.clients, options.rounds, options.requests)
    yield {"runs": [measure_run(run, *settings) for run in options.runs]}


HEAD = "run and engine;workers;requests per second;CPU milliseconds per request;speed-up (rounds)"


def table(results: dict[str, Any]) -> str:
    rows = [
        [
            f"{each['run']}, {each['engine']}",
            workers,
            f"{statistics.median(rates):.1f}",
            f"{each['server_cpu_ms_a_request'][workers]:.1f}",
            speed_up_of(each, workers),
        ]
        for each in results["runs"]
        for workers, rates in each["requests_a_second"].items()
    ]
    first = results["runs"][0]
    return (
        f"{first['clients']} clients, {first['requests']} requests of one sentence, medians of "
        f"{len(first['times_faster'])} alternating rounds.\n\n{markdown(HEAD.split(';'), rows)}\n\n"
        "All servers returned the same translations of a run. The clients need "
        f"{first['client_cpu_ms_a_request']:.1f} ms of CPU per request."
    )


def speed_up_of(result: dict[str, Any], workers: str) -> str:
    if workers == "1":
        return ""
    rounds = result["times_faster"]
    return f"**{result['times_faster_median']:.2f}** ({min(rounds):.2f}–{max(rounds):.2f})"
