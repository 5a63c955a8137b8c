"""The service under load: as much as it can bear, ten times more, and images that swell."""

import io
import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection

import pytest
from PIL import Image

from busy_server import (
    JSON,
    LIMITS,
    LONG,
    SHORT,
    figures,
    free_port,
    idle,
    keep,
    limited,
    memory,
    percentile,
)
from calling_server import Server, start, until
from flooding import flood, post
from forking import CAMPAIGN
from small_runs import train_captioner, train_reverser, train_snail

STEADY = json.dumps({"run": "reverser", "texts": ["abcd"]})
REQUEST = post("/api/translate", STEADY)
CLIENTS = 16


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("runs")
    trainers = {"snail": train_snail, "reverser": train_reverser, "captioner": train_captioner}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        folders = [train(folder / name) for name, train in trainers.items()]
    server = start(folders, *limited(**LIMITS), "--metrics-port", str(free_port()))
    yield server
    assert server.stop() == 0


def test_figures_are_counted_by_route_and_status(server: Server) -> None:
    server.ask("/api/translate", **SHORT)
    server.get("/nowhere/at/all")
    found = figures(server)
    assert found['seqloom_requests_total{route="/api/translate",status="200"}'] >= 1
    assert found['seqloom_requests_total{route="other",status="404"}'] >= 1
    assert found['seqloom_batch_size_count{run="snail"}'] >= 1


class Client:
    """One connection, one request after another."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self) -> tuple[int, float]:
        """Status and seconds."""
        begun = time.monotonic()
        self._connection.request("POST", "/api/translate", STEADY, JSON)
        response = self._connection.getresponse()
        response.read()
        assert response.status != 503 or int(response.headers["retry-after"]) >= 1
        return response.status, time.monotonic() - begun

    def close(self) -> None:
        self._connection.close()


def answered(found: list[tuple[int, float]]) -> int:
    return sum(status == 200 for status, _ in found)


def fastest(port: int, clients: int = 4, seconds: float = 2.0) -> float:
    """Answers a second to a few who never pause, and come anew for every request."""
    end = time.monotonic() + seconds

    def ask(_: int) -> int:
        answers = 0
        while time.monotonic() < end:
            with closing(Client(port)) as client:
                answers += client.ask()[0] == 200
        return answers

    with ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(ask, range(clients))) / seconds


def test_a_steady_load_meets_no_error(server: Server) -> None:
    """Requests come at 70 % of what the service can do, whether or not those before are done."""
    seconds = 3 * CAMPAIGN
    most = fastest(server.port)
    pause = 1 / (0.7 * most)
    begun = time.monotonic()

    def ask(number: int) -> tuple[int, float]:
        due = begun + number * pause
        time.sleep(max(0.0, due - time.monotonic()))
        with closing(Client(server.port)) as client:
            status, _ = client.ask()
        return status, time.monotonic() - due

    with ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(ask, range(int(seconds / pause))))
    seen = Counter(status for status, _ in found)
    times = [took for _, took in found]
    keep(
        "steady",
        seconds=seconds,
        requests=len(found),
        a_second=round(0.7 * most, 1),
        statuses=dict(seen),
        p50_ms=round(1000 * percentile(times, 0.5), 1),
        p99_ms=round(1000 * percentile(times, 0.99), 1),
    )
    assert set(seen) == {200}, seen


def test_overload_is_refused_soon_and_forgotten_soon(server: Server) -> None:
    """Far more than there is room for: only 200 and 503, and 503 says when to come again. Those who
    are refused do not take the time of those who are answered."""
    clients = 64 if CAMPAIGN == 1 else 256
    alone = answered(flood(server.port, REQUEST, 4, 2)) / 2
    before, seconds = memory(server), 2 * CAMPAIGN
    found = flood(server.port, REQUEST, clients, seconds)
    seen = Counter(status for status, _ in found)
    until(lambda: idle(server), 5)
    grown = memory(server) - before
    refusals = [took for status, took in found if status == 503]
    after = answered(flood(server.port, REQUEST, 4, 2)) / 2
    keep(
        "overload",
        seconds=seconds,
        connections=clients,
        statuses=dict(seen),
        answered_a_second=round(seen[200] / seconds, 1),
        answered_a_second_before=round(alone, 1),
        answered_a_second_after=round(after, 1),
        refusal_p50_ms=round(1000 * percentile(refusals, 0.5), 1),
        refusal_p99_ms=round(1000 * percentile(refusals, 0.99), 1),
        grown_mib=round(grown, 1),
    )
    assert set(seen) == {200, 503}, seen
    assert grown < 64
    assert server.post("/api/translate", **SHORT).status_code == 200
    # On a machine that does other things beside, two peaks can differ by half: the figures tell more.
    assert seen[200] / seconds > 0.5 * min(alone, after)


def test_nothing_takes_longer_than_the_deadline(server: Server) -> None:
    begun = time.monotonic()
    response = server.post("/api/translate", **LONG)
    assert response.status_code == 503
    assert response.json()["kind"] == "deadline"
    assert time.monotonic() - begun > LIMITS["deadline_seconds"] - 1
    until(lambda: idle(server))


def test_image_bombs_take_no_memory(server: Server) -> None:
    """A hundred megapixels in twelve kilobytes are refused by their header."""
    content = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(content, "PNG")
    before, count = memory(server), 4 * CAMPAIGN
    for _ in range(count):
        response = server.client.post(
            f"{server.url}/api/caption",
            content=content.getvalue(),
            headers={"Content-Type": "image/png"},
        )
        assert response.status_code == 413, response.text
        assert "10,000 × 10,000 pixels" in response.json()["error"]
    grown = memory(server) - before
    keep("image-bombs", images=count, grown_mib=round(grown, 1))
    assert grown < 100
    assert not any("Warning" in line for line in server.told)
