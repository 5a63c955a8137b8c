"""Latency and throughput of the HTTP server.

Servers of one run are measured in turn: one merges requests into batches, one processes one request
at a time, and with `--before` one is the server of another checkout of seqloom. They alternate, so that
other load on the machine affects all of them.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.serving.checkout import PRESENT, add_before_option, commit_of, in_turn
from bench.tables import markdown

MERGED, SINGLE, BEFORE = ("merged", "one at a time", "before")
"""Names of the servers: the present one, with and without merging, and the one of another checkout."""
ONE_AT_A_TIME = ("--limit", "in_flight=1", "--limit", "queue_seconds=600")
TRIES = 15
"""Measurements per text, direct and over HTTP. The fastest one counts."""
LISTENING, READY = (r"http://[^ ]+:(\d+): loading", r"open http://[^ ]+:(\d+)")
"""Log lines of a server when its page is available, and when its runs are loaded."""
PROGRAM = "from seqloom.cli.main import run; run()"


@dataclass(frozen=True)
class ServerProcess:
    """A running server.

    pid: of the command; workers are its child processes
    """

    port: int
    pid: int

    def cpu_seconds(self) -> float:
        """CPU time of the server and of its workers."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        ticks = 0
        for pid in (self.pid, *children):
            # The fields after the name of the program, which can contain spaces.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])  # in programs and in the kernel
        return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def running_server(
    run: Path, *options: str, log_line: str = READY, checkout: Path = PRESENT
) -> Iterator[int]:
    """Start a server of a run, wait for a log line, and yield the port."""
    with server_process(run, *options, log_line=log_line, checkout=checkout) as server:
        yield server.port


@contextmanager
def server_process(
    run: Path, *options: str, log_line: str = READY, checkout: Path = PRESENT
) -> Iterator[ServerProcess]:
    """Start a server of a run with the code of a checkout, and wait for a log line."""
    command = [sys.executable, "-c", PROGRAM, "serve", str(run), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if match := re.match(log_line, line):
                    yield ServerProcess(int(match[1]), process.pid)
                    return
            raise SystemExit(f"{run}: the server did not start")
        finally:
            process.terminate()


class Client:
    """One connection that sends one request after another."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port)

    def translate(self, text: str) -> str:
        body = json.dumps({"texts": [text], "split": False})
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/api/translate", body, headers)
        response = self._connection.getresponse()
        content = response.read()
        assert response.status == 200, content
        translation: str = json.loads(content)["translations"][0]["text"]
        return translation


def measure_throughput(
    port: int, texts: list[str], clients: int, times: list[float] | None = None
) -> tuple[float, list[str]]:
    """Requests per second, and the translations. Appends the seconds of each request to `times`.

    Each client takes the next text when it is free, so that all workers of a server stay busy although
    they do not have the same number of connections.
    """
    remaining = iter(texts)
    connections = [Client(port) for _ in range(clients)]

    def translate_next(number: int) -> dict[str, str]:
        translations = {}
        for text in remaining:
            begin = time.perf_counter()
            translations[text] = connections[number].translate(text)
            if times is not None:
                times.append(time.perf_counter() - begin)
        return translations

    with ThreadPoolExecutor(clients) as pool:
        start = time.perf_counter()
        results = list(pool.map(translate_next, range(clients)))
        seconds = time.perf_counter() - start
    translations = {text: output for result in results for text, output in result.items()}
    return len(texts) / seconds, [translations[text] for text in texts]


def measure_latency(run: Any, port: int, texts: list[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each text in Python and over HTTP: the minimum of alternating tries, because
    other load on the machine can only add time."""
    client = Client(port)
    direct, over_http = [], []
    for text in texts:
        times = []
        for _ in range(TRIES):
            start = time.perf_counter()
            run.translate([text], attention=False)
            middle = time.perf_counter()
            client.translate(text)
            times.append((middle - start, time.perf_counter() - middle))
        direct_times, http_times = zip(*times, strict=True)
        direct.append(1000 * min(direct_times))
        over_http.append(1000 * min(http_times))
    return direct, over_http


def measure_startup(run: Path, text: str) -> float:
    """Seconds from the command to its first translation."""
    start = time.perf_counter()
    with running_server(run) as port:
        Client(port).translate(text)
        return time.perf_counter() - start


@dataclass
class LoadFigures:
    """Figures of one server under the load of all clients.

    rates: requests per second of each round
    seconds: duration of each request
    translations: the outputs of all rounds
    """

    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    translations: list[str] = field(default_factory=list)

    def percentiles(self) -> tuple[float, float]:
        """p50 and p95 of the requests, in milliseconds."""
        p50, p95 = statistics.median(self.seconds), statistics.quantiles(self.seconds, n=20)[-1]
        return 1000 * p50, 1000 * p95


def measure_load(
    ports: dict[str, int],
    number: int,
    texts: list[str],
    clients: int,
    figures: dict[str, LoadFigures],
) -> None:
    """Let all servers translate the same texts in turn. Add the results to the figures of each server.

    number: number of the round
    """
    for name in in_turn(list(ports), number):
        server = figures[name]
        rate, outputs = measure_throughput(ports[name], texts, clients, server.seconds)
        server.rates.append(rate)
        server.translations += outputs


def ratios_of(rates: list[float], others: list[float]) -> list[float]:
    return [rate / other for rate, other in zip(rates, others, strict=True)]


def compare_with_before(figures: dict[str, LoadFigures], commit: str) -> dict[str, Any]:
    """Figures of the server of the other checkout, and the ratio of the present one to it."""
    now, before = figures[MERGED], figures[BEFORE]
    ratios = ratios_of(now.rates, before.rates)
    p50, p95 = before.percentiles()
    return {
        "commit": commit,
        "requests_a_second": before.rates,
        "p50_ms": p50,
        "p95_ms": p95,
        "throughput_ratio": ratios,
        "throughput_ratio_median": statistics.median(ratios),
        "different_translations": sum(
            new != old for new, old in zip(now.translations, before.translations, strict=True)
        ),
    }


def measure_run(
    folder: Path, clients: int, rounds: int, count: int, before: Path | None = None
) -> dict[str, Any]:
    import seqloom
    from seqloom.data.readers.splits import read_split
    from seqloom.serving.server.loading import reserve_event_loop_core

    reserve_event_loop_core()  # direct calls use as many threads as the server
    run = seqloom.load(folder)
    sentences = dict.fromkeys(example.source for example in read_split(run.config.data, "test"))
    texts = list(sentences)[: count * rounds + 60]
    warm_up, timed, loaded = texts[:20], texts[20:60], texts[60:]
    startup_seconds = [measure_startup(folder, warm_up[0]) for _ in range(3)]
    figures: dict[str, LoadFigures] = {name: LoadFigures() for name in (MERGED, SINGLE, BEFORE)}
    for number in range(rounds):
        # New processes in each round: where the weights lie in memory changes the speed of a process
        # by a few percent.
        with ExitStack() as servers:
            ports = {
                MERGED: servers.enter_context(running_server(folder)),
                SINGLE: servers.enter_context(running_server(folder, *ONE_AT_A_TIME)),
            }
            if before is not None:
                ports[BEFORE] = servers.enter_context(running_server(folder, checkout=before))
            for port in ports.values():
                measure_throughput(port, warm_up, 4)
            measure_load(
                ports, number, loaded[number * count : (number + 1) * count], clients, figures
            )
            if number == rounds - 1:
                direct, over_http = measure_latency(run, ports[MERGED], [*warm_up, *timed])
    direct, over_http = direct[len(warm_up) :], over_http[len(warm_up) :]
    merged, single = figures[MERGED], figures[SINGLE]
    assert merged.translations == single.translations, "merging changed a translation"
    ratios = ratios_of(merged.rates, single.rates)
    merged_p50, merged_p95 = merged.percentiles()
    return {
        "run": folder.name,
        "clients": clients,
        "requests": len(merged.translations),
        "requests_a_second": {MERGED: merged.rates, SINGLE: single.rates},
        "times_faster": ratios,
        "times_faster_median": statistics.median(ratios),
        "merged_p50_ms": merged_p50,
        "merged_p95_ms": merged_p95,
        **({"before": compare_with_before(figures, commit_of(before))} if before else {}),
        "direct_p50_ms": statistics.median(direct),
        "over_http_p50_ms": statistics.median(over_http),
        "overhead_p50_ms": statistics.median(
            http_ms - direct_ms for direct_ms, http_ms in zip(direct, over_http, strict=True)
        ),
        "first_answer_seconds": startup_seconds,
        "equal_answers": True,
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--requests", type=int, default=140, help="requests per round")
    add_before_option(parser)


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    yield measure_run(
        options.run, options.clients, options.rounds, options.requests, options.before
    )


def table(results: dict[str, Any]) -> str:
    """Merging of requests, the comparison with the other checkout, and the overhead of HTTP."""
    requests = f"{results['clients']} clients, {results['requests']} requests of one sentence"
    rounds = results["requests_a_second"]
    p50, p95 = results["merged_p50_ms"], results["merged_p95_ms"]
    load = [
        ["one request at a time", f"{statistics.median(rounds[SINGLE]):.1f}"],
        ["merged into batches", f"{statistics.median(rounds[MERGED]):.1f}"],
        [
            f"**speed-up**, median of {len(results['times_faster'])} alternating rounds",
            f"**{results['times_faster_median']:.1f}**",
        ],
    ]
    single = [
        ["in Python", f"{results['direct_p50_ms']:.1f}"],
        ["over HTTP", f"{results['over_http_p50_ms']:.1f}"],
        ["**overhead of the service**", f"**{results['overhead_p50_ms']:.1f}**"],
    ]
    starts = results["first_answer_seconds"]
    merged = f"A merged request takes {p50:.0f} ms (p50) or {p95:.0f} ms (p95, {p95 / p50:.2f} times p50)."
    parts = [
        markdown([requests, "requests per second"], load),
        f"Run: {results['run']}, with the beam of its recipe. Both servers returned the same translations.",
        merged,
        *([comparison_table(results)] if "before" in results else []),
        markdown([f"one client, one sentence, best of {TRIES} tries", "milliseconds, p50"], single),
        f"From `seqloom serve` to the first translation: {statistics.median(starts):.1f} s, median of "
        f"{len(starts)} starts.",
    ]
    return "\n\n".join(parts)


def comparison_table(results: dict[str, Any]) -> str:
    """The comparison with the other checkout."""
    before, p50, p95 = results["before"], results["merged_p50_ms"], results["merged_p95_ms"]
    sides = (
        (
            f"commit {before['commit']}",
            before["requests_a_second"],
            before["p50_ms"],
            before["p95_ms"],
        ),
        ("present version", results["requests_a_second"][MERGED], p50, p95),
    )
    rows = [
        [
            name,
            f"{statistics.median(rates):.1f}",
            f"{low:.0f} ms",
            f"{high:.0f} ms",
            f"{high / low:.2f}",
        ]
        for name, rates, low, high in sides
    ]
    rows.append(
        [
            f"**ratio**, median of {len(before['throughput_ratio'])} alternating rounds",
            f"**{before['throughput_ratio_median']:.2f}**",
            f"{p50 / before['p50_ms']:.2f}",
            f"{p95 / before['p95_ms']:.2f}",
            "",
        ]
    )
    head = [f"{results['clients']} clients, merged into batches", "requests per second"]
    return (
        f"{markdown([*head, 'p50', 'p95', 'p95 / p50'], rows)}\n\n"
        f"Both versions served the same run. {before['different_translations']} of "
        f"{results['requests']} translations differ between them."
    )
