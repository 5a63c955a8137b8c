"""A server with little room, its figures, and a place for what a campaign finds."""

import json
import os
import socket
from pathlib import Path
from typing import Any

from calling_server import Server

LIMITS = {
    "in_flight": 4,
    "queue": 12,
    "deadline_seconds": 6,
    "body_seconds": 3,
    "header_seconds": 2,
}
LONG = {"run": "snail", "texts": ["abcd " * 900] * 20}
"""A request that takes longer than its deadline."""
SHORT = {"run": "snail", "texts": ["abcd"]}
JSON = {"Content-Type": "application/json"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def limited(**changed: float) -> list[str]:
    """Options of a server with these limits."""
    return [part for name, value in changed.items() for part in ("--limit", f"{name}={value}")]


def figures(server: Server) -> dict[str, float]:
    """What it tells Prometheus, at the port that is its last argument."""
    arguments = server.process.args
    assert isinstance(arguments, list)
    lines = server.client.get(f"http://127.0.0.1:{arguments[-1]}/metrics").text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def in_flight(server: Server) -> int:
    return int(figures(server)["seqloom_requests_in_flight"])


def idle(server: Server) -> bool:
    return in_flight(server) == 0


def memory(server: Server) -> float:
    """MiB that the process holds."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def keep(name: str, **found: Any) -> None:
    """Write down what a campaign found, for `tools/campaign.py` to show."""
    if folder := os.environ.get("SEQLOOM_FIGURES"):
        path = Path(folder) / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
