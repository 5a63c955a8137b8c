"""Connections that hang about, clients that leave, and the end of the service."""

import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from busy_server import (
    LIMITS,
    LONG,
    SHORT,
    figures,
    free_port,
    idle,
    in_flight,
    keep,
    limited,
    percentile,
)
from calling_server import Server, start, until
from forking import CAMPAIGN
from small_runs import train_snail

TOGETHER = LIMITS["in_flight"]


@pytest.fixture(scope="module")
def snail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return train_snail(tmp_path_factory.mktemp("runs") / "snail")


def started(snail: Path, **limits: float) -> Server:
    return start([snail], *limited(**limits), "--metrics-port", str(free_port()))


@pytest.fixture(scope="module")
def server(snail: Path) -> Iterator[Server]:
    server = started(snail, **LIMITS)
    yield server
    assert server.stop() == 0


def test_who_goes_away_is_not_worked_for(server: Server) -> None:
    """Long requests, given up after a moment: the service is free again long before they end."""
    rounds, freed = 5 * CAMPAIGN, []
    for _ in range(rounds):
        connections = [server.send("/api/translate", LONG) for _ in range(TOGETHER)]
        until(lambda: in_flight(server) == TOGETHER)
        for connection in connections:
            connection.close()
        begun = time.monotonic()
        until(lambda: idle(server), LIMITS["deadline_seconds"] - 1)
        freed.append(time.monotonic() - begun)
    server.ask("/api/translate", **SHORT)
    gone = figures(server)['seqloom_requests_total{route="/api/translate",status="499"}']
    keep(
        "disconnects",
        clients=rounds * TOGETHER,
        seen_to_be_gone=int(gone),
        free_again_p50_ms=round(1000 * percentile(freed, 0.5), 1),
        free_again_worst_ms=round(1000 * max(freed), 1),
    )
    assert gone == rounds * TOGETHER


def test_a_stream_that_nobody_reads_any_more_ends(server: Server) -> None:
    connection = server.send("/api/translate/stream", SHORT)
    said = b""
    while b"event: start" not in said:
        said += connection.recv(4096)
    connection.close()
    until(lambda: idle(server), LIMITS["deadline_seconds"] - 1)


def closed_after(connection: socket.socket, begun: float) -> tuple[float, bytes]:
    """Seconds until the other side closes, and what it says before."""
    said = b""
    try:
        while part := connection.recv(4096):
            said += part
    except ConnectionResetError:
        pass
    return time.monotonic() - begun, said


@pytest.mark.parametrize(
    ("name", "sent", "answer"),
    [
        ("idle", b"", b""),
        ("request line", b"POST /api/translate HTT", b""),
        ("header", b"POST /api/translate HTTP/1.1\r\nHost: a\r\nX-Slow: ", b""),
        (
            "body",
            b"POST /api/translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b'Content-Length: 100\r\n\r\n{"texts": [',
            b"408 Request Timeout",
        ),
    ],
)
def test_slow_connections_are_closed_and_hurt_nobody(
    server: Server, name: str, sent: bytes, answer: bytes
) -> None:
    count = 50 if CAMPAIGN == 1 else 250
    connections = [server.connect() for _ in range(count)]
    begun = time.monotonic()
    for connection in connections:
        connection.sendall(sent)
    assert server.post("/api/translate", **SHORT).status_code == 200
    healthy = time.monotonic() - begun
    times = []
    for connection in connections:
        seconds, said = closed_after(connection, begun)
        times.append(seconds)
        assert answer in said
        connection.close()
    keep(
        f"slow-{name.replace(' ', '-')}",
        connections=count,
        limit_seconds=LIMITS["body_seconds" if answer else "header_seconds"],
        closed_within_seconds=round(max(times), 2),
        healthy_ms=round(1000 * healthy, 1),
    )
    assert healthy < max(times), "somebody else was answered meanwhile"
    assert max(times) < 10


def test_an_idle_connection_may_be_used_again_within_its_time(server: Server) -> None:
    for _ in range(3):
        assert server.get("/health").status_code == 200
        time.sleep(0.3)


def ended_under_load(server: Server, count: int) -> Counter[str]:
    """Send SIGTERM while requests are under way; -> what became of each of them."""
    seen: Counter[str] = Counter()
    lock = threading.Lock()

    def ask() -> None:
        connection = server.send("/api/translate", SHORT)
        _, answer = closed_after(connection, 0.0)
        with lock:
            seen[answer[9:12].decode() or "lost"] += 1
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    until(lambda: in_flight(server) == count)
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(30)
    return seen


def test_sigterm_answers_what_was_accepted_and_exits_0(snail: Path) -> None:
    seen: Counter[str] = Counter()
    times = []
    for _ in range(CAMPAIGN):
        server = started(snail)
        seen += ended_under_load(server, 8)
        begun = time.monotonic()
        assert server.process.wait(10) == 0
        times.append(time.monotonic() - begun)
        with pytest.raises(httpx.ConnectError):
            server.get("/health")
        until(lambda: server.told[-1] == "stopped")  # noqa: B023
    keep(
        "sigterm",
        ends=CAMPAIGN,
        answers=dict(seen),
        slowest_exit_seconds=round(max(times), 2),
    )
    assert seen == {"200": 8 * CAMPAIGN}


def test_a_second_signal_ends_it_at_once(snail: Path) -> None:
    server = started(snail)
    connection = server.send("/api/translate", LONG)
    until(lambda: in_flight(server) == 1)
    os.kill(server.process.pid, signal.SIGTERM)
    time.sleep(0.3)
    assert server.process.poll() is None, "it waits for what is under way"
    os.kill(server.process.pid, signal.SIGTERM)
    assert server.process.wait(10) == -signal.SIGTERM
    connection.close()
