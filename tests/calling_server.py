"""A real server in a process of its own, and a client that says little and checks much."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx

SOURCE = Path(__file__).parents[1] / "src"
PROGRAM = "from seqloom.cli.main import run; run()"
KEY = "open sesame"


@dataclass
class Server:
    """`seqloom serve`, started and open."""

    process: subprocess.Popen[str]
    url: str
    told: list[str] = field(default_factory=list)
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def get(self, path: str) -> httpx.Response:
        return self.client.get(self.url + path)

    def post(self, path: str, **content: Any) -> httpx.Response:
        return self.client.post(self.url + path, json=content)

    def ask(self, path: str, **content: Any) -> Any:
        """The answer to a request that must succeed."""
        response = self.post(path, **content)
        assert response.status_code == 200, response.text
        return response.json()

    def refusal(self, path: str, **content: Any) -> tuple[int, str, str]:
        """Status, kind and sentence of a request that must be refused."""
        return refusal(self.post(path, **content))

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.settimeout(30)
        return connection

    def send(self, path: str, content: Any) -> socket.socket:
        """A request whose answer is not waited for."""
        body = json.dumps(content).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection = self.connect()
        connection.sendall(head.encode() + body)
        return connection

    def stop(self) -> int:
        """Its exit status; ended the hard way after ten seconds."""
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def refusal(response: httpx.Response) -> tuple[int, str, str]:
    found = response.json()
    assert set(found) == {"error", "kind", "problems"}
    assert "Traceback" not in found["error"]
    return response.status_code, found["kind"], found["error"]


def called(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`seqloom serve`, which is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "serve", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def start(runs: Sequence[Path], *options: str) -> Server:
    """Open at a free port."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", *map(str, runs), "--port", "0", *options],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    told: list[str] = []
    for line in process.stderr:
        told.append(line.rstrip())
        if found := re.match("open (http://[^ ]+)", line):
            # What it says later must not fill the pipe.
            threading.Thread(target=_read_on, args=(process.stderr, told), daemon=True).start()
            return Server(process, found[1], told)
    raise AssertionError(f"the server did not open: {told}")


def _read_on(pipe: IO[str], told: list[str]) -> None:
    with pipe:
        told += (line.rstrip() for line in pipe)


def until(true: Any, seconds: float = 10.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.02)
