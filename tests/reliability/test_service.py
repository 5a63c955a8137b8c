"""The service under load, under attack and at its end."""

import io
import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from calling_server import Server, start, until
from forking import CAMPAIGN
from small_runs import train_captioner, train_reverser, train_snail

LIMITS = {
    "in_flight": 4,
    "queue": 6,
    "deadline_seconds": 6,
    "body_seconds": 1,
    "header_seconds": 1,
}
LONG = {"run": "snail", "texts": ["abcd " * 900] * 20}
"""A request that takes longer than its deadline."""
JSON = {"Content-Type": "application/json"}
SHORT = {"run": "snail", "texts": ["abcd"]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return [
            train_snail(folder / "snail"),
            train_reverser(folder / "reverser"),
            train_captioner(folder / "captioner"),
        ]


@pytest.fixture(scope="module")
def server(folders: list[Path]) -> Iterator[Server]:
    limits = [part for name, value in LIMITS.items() for part in ("--limit", f"{name}={value}")]
    server = start(folders, *limits, "--metrics-port", str(free_port()))
    yield server
    assert server.stop() == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def figures(server: Server) -> dict[str, float]:
    arguments = server.process.args
    assert isinstance(arguments, list)
    lines = server.client.get(f"http://127.0.0.1:{arguments[-1]}/metrics").text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def memory(server: Server) -> float:
    """MiB that the process holds."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def quiet(server: Server) -> bool:
    return figures(server)["seqloom_requests_in_flight"] == 0


def test_figures_are_counted_by_route_and_status(server: Server) -> None:
    server.ask("/api/translate", **SHORT)
    server.get("/nowhere/at/all")
    found = figures(server)
    assert found['seqloom_requests_total{route="/api/translate",status="200"}'] >= 1
    assert found['seqloom_requests_total{route="other",status="404"}'] >= 1
    assert found['seqloom_batch_size_count{run="snail"}'] >= 1


def test_overload_is_refused_at_once_and_forgotten_soon(server: Server) -> None:
    """Ten times more than there is room for: only 200 and 503, and 503 says when to come again."""
    clients = 64
    server.ask("/api/translate", **SHORT)
    begun, before = time.monotonic(), memory(server)
    end = begun + 3 * CAMPAIGN

    def hammer(number: int) -> Counter[int]:
        seen: Counter[int] = Counter()
        client = HTTPConnection("127.0.0.1", server.port, timeout=30)
        while time.monotonic() < end:
            client.request("POST", "/api/translate", json.dumps(SHORT), JSON)
            response = client.getresponse()
            content = json.loads(response.read())
            seen[response.status] += 1
            if response.status == 503:
                assert content["kind"] == "busy"
                assert int(response.headers["retry-after"]) >= 1
        client.close()
        return seen

    with ThreadPoolExecutor(clients) as pool:
        seen = sum(pool.map(hammer, range(clients)), Counter())
    assert set(seen) == {200, 503}, seen
    assert memory(server) < before + 64
    until(lambda: quiet(server), 5)
    assert server.post("/api/translate", **SHORT).status_code == 200


def test_who_goes_away_is_not_worked_for(server: Server) -> None:
    """Long requests, given up after a moment: the service is free again long before they end."""
    for _ in range(5 * CAMPAIGN):
        connections = [server.send("/api/translate", LONG) for _ in range(4)]
        until(lambda: figures(server)["seqloom_requests_in_flight"] == 4)
        for connection in connections:
            connection.close()
        until(lambda: quiet(server), 2)
    begun = time.monotonic()
    server.ask("/api/translate", **SHORT)
    assert time.monotonic() - begun < 2
    assert figures(server)['seqloom_requests_total{route="/api/translate",status="499"}'] >= 20


def test_a_stream_that_nobody_reads_any_more_ends(server: Server) -> None:
    connection = server.send("/api/translate/stream", {"run": "snail", "texts": ["abcd"]})
    assert b"event: start" in connection.recv(4096) + connection.recv(4096)
    connection.close()
    until(lambda: quiet(server), 2)


def test_nothing_takes_longer_than_the_deadline(server: Server) -> None:
    begun = time.monotonic()
    response = server.post("/api/translate", **LONG)
    assert response.status_code == 503
    assert response.json()["kind"] == "deadline"
    assert 5 < time.monotonic() - begun < 9
    until(lambda: quiet(server), 2)


def closed_after(connection: socket.socket) -> tuple[float, bytes]:
    """Seconds until the other side closes, and what it says before."""
    begun = time.monotonic()
    said = b""
    try:
        while part := connection.recv(4096):
            said += part
    except ConnectionResetError:
        pass
    return time.monotonic() - begun, said


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"POST /api/translate HTT", b""),
        (b"POST /api/translate HTTP/1.1\r\nHost: a\r\nX-Slow: ", b""),
        (
            b"POST /api/translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b'Content-Length: 100\r\n\r\n{"texts": [',
            b"408 Request Timeout",
        ),
    ],
    ids=["idle", "request line", "header", "body"],
)
def test_slow_connections_are_closed_and_hurt_nobody(
    server: Server, sent: bytes, answer: bytes
) -> None:
    connections = [server.connect() for _ in range(50 * CAMPAIGN)]
    for connection in connections:
        connection.sendall(sent)
    begun = time.monotonic()
    server.ask("/api/translate", run="reverser", texts=["abcd"])
    assert time.monotonic() - begun < 1
    for connection in connections:
        seconds, said = closed_after(connection)
        assert seconds < 4
        assert answer in said
        connection.close()


def test_an_idle_connection_may_be_used_again_within_its_time(server: Server) -> None:
    for _ in range(3):
        assert server.get("/health").status_code == 200
        time.sleep(0.3)


def ended_under_load(server: Server) -> Counter[Any]:
    """Send SIGTERM while requests are under way; -> what became of each of them."""
    seen: Counter[Any] = Counter()
    lock = threading.Lock()
    accepted = threading.Semaphore(0)

    def ask() -> None:
        """Requests that were sent before the signal must be answered, others may be refused."""
        connection = server.send("/api/translate", SHORT)
        accepted.release()
        answer = b""
        while part := connection.recv(65536):
            answer += part
            if b'"translations"' in answer and answer.rstrip().endswith(b"]}"):
                break
        with lock:
            seen[answer[9:12].decode() if answer else "lost"] += 1
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in threads:
        accepted.acquire()
    time.sleep(0.1)  # from the socket into the service
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(10)
    return seen


def test_sigterm_answers_what_was_accepted_and_exits_0(folders: list[Path]) -> None:
    for _ in range(CAMPAIGN):
        server = start(folders[:1])
        seen = ended_under_load(server)
        begun = time.monotonic()
        assert server.process.wait(10) == 0
        assert time.monotonic() - begun < 10
        assert seen == {"200": 8}
        with pytest.raises(httpx.ConnectError):
            server.get("/health")
        until(lambda: server.told[-1] == "stopped")  # noqa: B023


def test_a_second_signal_ends_it_at_once(folders: list[Path]) -> None:
    server = start(folders[:1])
    connection = server.send("/api/translate", LONG)
    time.sleep(0.3)
    os.kill(server.process.pid, signal.SIGTERM)
    time.sleep(0.3)
    assert server.process.poll() is None, "it waits for what is under way"
    begun = time.monotonic()
    os.kill(server.process.pid, signal.SIGTERM)
    assert server.process.wait(5) == -signal.SIGTERM
    assert time.monotonic() - begun < 2
    connection.close()


def test_image_bombs_take_no_memory(server: Server) -> None:
    before = memory(server)
    content = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(content, "PNG")
    for _ in range(4 * CAMPAIGN):
        response = server.client.post(
            f"{server.url}/api/caption",
            content=content.getvalue(),
            headers={"Content-Type": "image/png"},
        )
        assert response.status_code == 413, response.text
        assert "10,000 × 10,000 pixels" in response.json()["error"]
    assert memory(server) < before + 100
