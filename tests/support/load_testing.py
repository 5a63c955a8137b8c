"""Load tests of the server: limits, metrics, and a load generator."""

import selectors
import socket
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from support.server_process import ServerProcess

LIMITS = {
    "in_flight": 4,
    "queue": 12,
    "deadline_seconds": 6,
    "body_seconds": 3,
    "header_seconds": 2,
}
LONG_REQUEST = {"run": "snail", "texts": ["abcd " * 900] * 20}
"""A request that takes longer than the deadline."""
SHORT_REQUEST = {"run": "snail", "texts": ["abcd"]}


def limit_options(**limits: float) -> list[str]:
    """Options of `seqloom serve` that set limits."""
    return [part for name, value in limits.items() for part in ("--limit", f"{name}={value}")]


def read_metrics(server: ServerProcess) -> dict[str, float]:
    """The Prometheus metrics. --metrics-port must be the server's last option."""
    arguments = server.process.args
    assert isinstance(arguments, list)
    lines = server.client.get(f"http://127.0.0.1:{arguments[-1]}/metrics").text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def in_flight(server: ServerProcess) -> int:
    return int(read_metrics(server)["seqloom_requests_in_flight"])


def is_idle(server: ServerProcess) -> bool:
    return in_flight(server) == 0


def resident_mib(server: ServerProcess) -> float:
    """Resident memory of the server in MiB."""
    return process_mib(server.process.pid)


def process_mib(process: int | str = "self") -> float:
    """Resident memory of a process in MiB. Default: this process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def percentile(values: list[float], fraction: float) -> float:
    return sorted(values)[min(len(values) - 1, int(fraction * len(values)))]


@dataclass(eq=False)
class LoadConnection:
    """A connection that sends one request after another."""

    socket: socket.socket
    due_at: float = 0.0
    received: bytes = b""

    def send(self, request: bytes, due_at: float) -> None:
        self.received, self.due_at = b"", due_at
        self.socket.sendall(request)

    def receive(self) -> int | None:
        """Read what is available. The status, once the response is complete."""
        part = self.socket.recv(65536)
        assert part, f"the server closed the connection after {self.received[:200]!r}"
        self.received += part
        head, separator, body = self.received.partition(b"\r\n\r\n")
        if not separator:
            return None
        headers = head.lower()
        if len(body) < _number_header(headers, b"content-length"):
            return None
        status = int(head[9:12])
        assert status != 503 or _number_header(headers, b"retry-after") >= 1
        return status


def _number_header(headers: bytes, name: bytes) -> int:
    return int(headers.partition(b"\r\n" + name + b": ")[2].split(b"\r\n", 1)[0])


def generate_load(
    port: int, request: bytes, clients: int, seconds: float, interval: float = 0.0
) -> list[tuple[int, float]]:
    """Send one request repeatedly over many connections. Returns (status, seconds) of each.

    All connections are in one thread, because clients and server share the machine. Every request
    is waited for, also those whose response arrives after the end.

    interval: seconds between two requests, which do not wait for earlier responses while a connection
        is free; the time of a request begins when it is due. Default 0: each connection sends its next
        request when it has received a response.
    """
    results: list[tuple[int, float]] = []
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        idle: deque[LoadConnection] = deque()
        for _ in range(clients):
            opened = socket.create_connection(("127.0.0.1", port), timeout=30)
            idle.append(LoadConnection(stack.enter_context(opened)))
            selector.register(opened, selectors.EVENT_READ, idle[-1])
        now = due = start = time.monotonic()
        sent = 0
        while now < start + seconds or len(idle) < clients:
            while idle and due <= now < start + seconds:
                idle.popleft().send(request, due if interval else now)
                sent += 1
                due = start + sent * interval
            wait = max(0.0, min(due, start + seconds) - now) if idle else 30
            ready = selector.select(wait)
            assert ready or idle, "no response for 30 s"
            now = time.monotonic()
            for key, _ in ready:
                connection: LoadConnection = key.data
                status = connection.receive()
                if status is not None:
                    results.append((status, now - connection.due_at))
                    idle.append(connection)
    return results
