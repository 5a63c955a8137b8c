"""What the service costs and gains: python -m bench.serving RUN

Two servers of one run, side by side in one sitting: one merges requests, one works on a request at
a time. Clients of both take turns, so that whatever else the machine does falls on both.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.machine import about

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "serving.json"
ONE_AT_A_TIME = ("--limit", "in_flight=1", "--limit", "queue_seconds=600")
TRIES = 15
"""Of each text, asked directly and over HTTP."""
LISTENING, OPEN = (r"http://[^ ]+:(\d+): loading", r"open http://[^ ]+:(\d+)")
"""What a server says when its page can be fetched, and when all is there."""
PROGRAM = "from seqloom.cli.main import run; run()"


@contextmanager
def served(run: Path, *options: str, sign: str = OPEN) -> Iterator[int]:
    """The port of a server of this run, from the moment at which it gives a sign."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", str(run), "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.match(sign, line):
                yield int(found[1])
                return
        raise SystemExit(f"{run}: the server did not open")
    finally:
        process.terminate()
        process.wait()


class Client:
    """One connection, one request after another."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port)

    def translate(self, text: str) -> str:
        body = json.dumps({"texts": [text], "split": False})
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/api/translate", body, headers)
        response = self._connection.getresponse()
        content = response.read()
        assert response.status == 200, content
        answer: str = json.loads(content)["translations"][0]["text"]
        return answer


def throughput(port: int, texts: list[str], clients: int) -> tuple[float, list[str]]:
    """Requests a second, and the answers."""
    shares = [texts[number::clients] for number in range(clients)]
    connected = [Client(port) for _ in range(clients)]

    def work(number: int) -> list[str]:
        return [connected[number].translate(text) for text in shares[number]]

    with ThreadPoolExecutor(clients) as pool:
        begun = time.perf_counter()
        answers = list(pool.map(work, range(clients)))
        seconds = time.perf_counter() - begun
    found = dict(
        pair
        for mine, own in zip(shares, answers, strict=True)
        for pair in zip(mine, own, strict=True)
    )
    return len(texts) / seconds, [found[text] for text in texts]


def overhead(run: Any, port: int, texts: list[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each text, asked directly and over HTTP: the best of several of each, in turn,
    since whatever else the machine does only ever adds to them."""
    client = Client(port)
    direct, over_http = [], []
    for text in texts:
        taken = []
        for _ in range(TRIES):
            begun = time.perf_counter()
            run.translate([text], attention=False)
            middle = time.perf_counter()
            client.translate(text)
            taken.append((middle - begun, time.perf_counter() - middle))
        own, other = zip(*taken, strict=True)
        direct.append(1000 * min(own))
        over_http.append(1000 * min(other))
    return direct, over_http


def first_answer(run: Path, text: str) -> float:
    """Seconds from the command to its first translation."""
    begun = time.perf_counter()
    with served(run) as port:
        Client(port).translate(text)
        return time.perf_counter() - begun


def measure(folder: Path, clients: int, rounds: int, count: int) -> dict[str, Any]:
    import seqloom
    from seqloom.data.splits import read_split
    from seqloom.serving.assembling import leave_a_core

    leave_a_core()  # as the service does
    run = seqloom.load(folder)
    sentences = dict.fromkeys(one.source for one in read_split(run.config.data, "test"))
    texts = list(sentences)[: count * rounds + 60]
    warm, timed = texts[:20], texts[20:60]
    starts = [first_answer(folder, warm[0]) for _ in range(3)]
    rates: dict[str, list[float]] = {"merged": [], "one at a time": []}
    with served(folder) as merging, served(folder, *ONE_AT_A_TIME) as single:
        for port in (merging, single):
            throughput(port, warm, 4)
        direct, over_http = overhead(run, merging, [*warm, *timed])
        direct, over_http = direct[len(warm) :], over_http[len(warm) :]
        for number in range(rounds):
            part = texts[60 + number * count : 60 + (number + 1) * count]
            fast, merged = throughput(merging, part, clients)
            slow, alone = throughput(single, part, clients)
            assert merged == alone, "merging has changed an answer"
            rates["merged"].append(fast)
            rates["one at a time"].append(slow)
    ratios = [
        fast / slow for fast, slow in zip(rates["merged"], rates["one at a time"], strict=True)
    ]
    return {
        "run": folder.name,
        "clients": clients,
        "requests": count * rounds,
        "requests_a_second": rates,
        "times_faster": ratios,
        "times_faster_median": statistics.median(ratios),
        "direct_p50_ms": statistics.median(direct),
        "over_http_p50_ms": statistics.median(over_http),
        "overhead_p50_ms": statistics.median(
            there - here for here, there in zip(direct, over_http, strict=True)
        ),
        "first_answer_seconds": starts,
        "equal_answers": True,
        "about": {**about(0), "command": f"python -m bench.serving {folder}"},
    }


def page(found: dict[str, Any]) -> str:
    facts = found["about"]
    middle = {name: statistics.median(rates) for name, rates in found["requests_a_second"].items()}
    return f"""# The service, measured

Written by `{facts["command"]}` ({facts["date"]}): {facts["machine"]}, torch {facts["torch"]}. Server
and clients share the machine; {facts["threads"]} of its cores computes, in the service and in the direct call alike, and one is left to
the event loop. Run: {found["run"]}, with its recipe's own beam.

| {found["clients"]} clients, {found["requests"]} requests of one sentence | requests a second |
|---|---:|
| a request at a time | {middle["one at a time"]:.1f} |
| merged into batches | {middle["merged"]:.1f} |
| **times faster**, median of {len(found["times_faster"])} rounds in turn | **{found["times_faster_median"]:.1f}** |

Both gave the same answers.

| one client, one sentence, the best of {TRIES} times | milliseconds, p50 |
|---|---:|
| asked directly, in Python | {found["direct_p50_ms"]:.1f} |
| over HTTP | {found["over_http_p50_ms"]:.1f} |
| **what the service adds** | **{found["overhead_p50_ms"]:.1f}** |

From `seqloom serve` to its first translation: {statistics.median(found["first_answer_seconds"]):.1f} s, median of
{len(found["first_answer_seconds"])} starts.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=256, help="in each round")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    found = measure(given.run, given.clients, given.rounds, given.requests)
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    given.out.with_suffix(".md").write_text(page(found), encoding="utf-8")
    print(page(found))


if __name__ == "__main__":
    main()
