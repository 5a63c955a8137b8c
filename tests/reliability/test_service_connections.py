"""Slow connections, clients that disconnect, and the shutdown of the server."""

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

from support.free_ports import free_port
from support.load_testing import (
    LIMITS,
    LONG_REQUEST,
    SHORT_REQUEST,
    in_flight,
    is_idle,
    limit_options,
    percentile,
    read_metrics,
)
from support.server_process import ServerProcess, start_server, wait_until
from support.small_runs import train_slow_run
from support.trials import count_trials, save_results

pytestmark = pytest.mark.slow
MAX_IN_FLIGHT = LIMITS["in_flight"]


@pytest.fixture(scope="module")
def snail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose translations take long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return train_slow_run(tmp_path_factory.mktemp("runs") / "snail")


def start_with_metrics(snail: Path, **limits: float) -> ServerProcess:
    return start_server([snail], *limit_options(**limits), "--metrics-port", str(free_port()))


@pytest.fixture(scope="module")
def server(snail: Path) -> Iterator[ServerProcess]:
    server = start_with_metrics(snail, **LIMITS)
    yield server
    assert server.stop() == 0


def test_requests_of_disconnected_clients_are_cancelled(server: ServerProcess) -> None:
    """After clients of long requests disconnect, the server is idle long before the deadline."""
    rounds, idle_after = count_trials(5, 500), []
    for _ in range(rounds):
        connections = [server.send("/api/translate", LONG_REQUEST) for _ in range(MAX_IN_FLIGHT)]
        wait_until(lambda: in_flight(server) == MAX_IN_FLIGHT)
        for connection in connections:
            connection.close()
        start = time.monotonic()
        wait_until(lambda: is_idle(server), LIMITS["deadline_seconds"] - 1)
        idle_after.append(time.monotonic() - start)
    server.post_json("/api/translate", **SHORT_REQUEST)
    name = 'seqloom_requests_total{route="/api/translate",status="499"}'
    disconnected = read_metrics(server)[name]
    save_results(
        "disconnects",
        clients=rounds * MAX_IN_FLIGHT,
        seen_to_be_gone=int(disconnected),
        free_again_p50_ms=round(1000 * percentile(idle_after, 0.5), 1),
        free_again_worst_ms=round(1000 * max(idle_after), 1),
    )
    assert disconnected == rounds * MAX_IN_FLIGHT


def test_a_stream_ends_when_its_client_disconnects(server: ServerProcess) -> None:
    connection = server.send("/api/translate/stream", SHORT_REQUEST)
    received = b""
    while b"event: start" not in received:
        received += connection.recv(4096)
    connection.close()
    wait_until(lambda: is_idle(server), LIMITS["deadline_seconds"] - 1)
    assert is_idle(server)


def read_until_closed(connection: socket.socket) -> bytes:
    """What the server sends before it closes the connection."""
    received = b""
    try:
        while part := connection.recv(4096):
            received += part
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize(
    ("name", "request_start", "expected"),
    [
        ("idle", b"", b""),
        ("request line", b"POST /api/translate HTT", b""),
        ("header", b"POST /api/translate HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b""),
        (
            "body",
            b"POST /api/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b'Content-Length: 100\r\n\r\n{"texts": [',
            b"408 Request Timeout",
        ),
    ],
)
def test_slow_connections_are_closed_and_do_not_block_other_requests(
    server: ServerProcess, name: str, request_start: bytes, expected: bytes
) -> None:
    count = count_trials(50, 250)
    connections = [server.connect() for _ in range(count)]
    start = time.monotonic()
    for connection in connections:
        connection.sendall(request_start)
    assert server.post("/api/translate", **SHORT_REQUEST).status_code == 200
    other_request_seconds = time.monotonic() - start
    times = []
    for connection in connections:
        received = read_until_closed(connection)
        times.append(time.monotonic() - start)
        assert expected in received
        connection.close()
    save_results(
        f"slow-{name.replace(' ', '-')}",
        connections=count,
        limit_seconds=LIMITS["body_seconds" if expected else "header_seconds"],
        closed_within_seconds=round(max(times), 2),
        healthy_ms=round(1000 * other_request_seconds, 1),
    )
    assert other_request_seconds < max(times), "the other request had to wait"
    assert max(times) < 10


def test_an_idle_connection_can_be_reused_within_its_time(server: ServerProcess) -> None:
    for _ in range(3):
        assert server.get("/health").status_code == 200
        time.sleep(0.3)


def stop_under_load(server: ServerProcess, count: int) -> Counter[str]:
    """Send SIGTERM while requests are being processed. Returns the statuses of the responses."""
    statuses: Counter[str] = Counter()
    lock = threading.Lock()

    def send() -> None:
        connection = server.send("/api/translate", SHORT_REQUEST)
        response = read_until_closed(connection)
        with lock:
            statuses[response[9:12].decode() or "lost"] += 1
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(count)]
    for thread in threads:
        thread.start()
    wait_until(lambda: in_flight(server) == count)
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(30)
    return statuses


def test_sigterm_finishes_admitted_requests_and_exits_with_0(snail: Path) -> None:
    statuses: Counter[str] = Counter()
    times = []
    shutdowns = count_trials(1, 100)
    for _ in range(shutdowns):
        server = start_with_metrics(snail)
        statuses += stop_under_load(server, 8)
        start = time.monotonic()
        assert server.process.wait(10) == 0
        times.append(time.monotonic() - start)
        with pytest.raises(httpx.ConnectError):
            server.get("/health")
        wait_until(lambda: server.log[-1] == "stopped")  # noqa: B023
    save_results(
        "sigterm",
        ends=shutdowns,
        answers=dict(statuses),
        slowest_exit_seconds=round(max(times), 2),
    )
    assert statuses == {"200": 8 * shutdowns}


def test_a_second_signal_ends_the_process_immediately(snail: Path) -> None:
    server = start_with_metrics(snail)
    connection = server.send("/api/translate", LONG_REQUEST)
    wait_until(lambda: in_flight(server) == 1)
    os.kill(server.process.pid, signal.SIGTERM)
    time.sleep(0.3)
    assert server.process.poll() is None, "the server did not wait for the admitted request"
    os.kill(server.process.pid, signal.SIGTERM)
    assert server.process.wait(10) == -signal.SIGTERM
    connection.close()
