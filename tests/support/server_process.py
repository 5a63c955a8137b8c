"""`seqloom serve` in a subprocess, and a client for it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx

from support.source_folder import SOURCE

PROGRAM = "from seqloom.cli.main import run; run()"
KEY = "open sesame"


@dataclass
class ServerProcess:
    """A running server that has loaded its runs.

    log: lines that it wrote to stderr
    """

    process: subprocess.Popen[str]
    url: str
    log: list[str] = field(default_factory=list)
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def get(self, path: str) -> httpx.Response:
        return self.client.get(self.url + path)

    def post(self, path: str, **content: Any) -> httpx.Response:
        return self.client.post(self.url + path, json=content)

    def post_json(self, path: str, **content: Any) -> Any:
        """The response body of a request that must succeed."""
        response = self.post(path, **content)
        assert response.status_code == 200, response.text
        return response.json()

    def post_error(self, path: str, **content: Any) -> tuple[int, str, str]:
        """Status, kind and message of a request that must fail."""
        return error_of(self.post(path, **content))

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.settimeout(30)
        return connection

    def send(self, path: str, content: Any) -> socket.socket:
        """Send a request without reading the response."""
        connection = self.connect()
        connection.sendall(encode_post(path, json.dumps(content)))
        return connection

    def stop(self) -> int:
        """Stop the server with SIGTERM and return its exit status. Kills it after ten seconds."""
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def encode_post(path: str, body: str) -> bytes:
    """The bytes of a POST request with a JSON body."""
    content = body.encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def error_of(response: httpx.Response) -> tuple[int, str, str]:
    """Status, kind and message of an error response."""
    body = response.json()
    assert set(body) == {"error", "kind", "problems"}
    assert "Traceback" not in body["error"]
    return response.status_code, body["kind"], body["error"]


def run_serve_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `seqloom serve` with arguments that make it exit by itself."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "serve", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def start_server(runs: Sequence[Path], *options: str) -> ServerProcess:
    """Start a server at a free port and wait until it has loaded the runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", *map(str, runs), "--port", "0", *options],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    log: list[str] = []
    for line in process.stderr:
        log.append(line.rstrip())
        if match := re.match("open (http://[^ ]+)", line):
            # Keep reading, so that later output cannot fill the pipe and block the server.
            threading.Thread(target=_read_log, args=(process.stderr, log), daemon=True).start()
            return ServerProcess(process, match[1], log)
    raise AssertionError(f"the server did not start: {log}")


def _read_log(pipe: IO[str], log: list[str]) -> None:
    with pipe:
        log += (line.rstrip() for line in pipe)


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until a condition holds. Fails after a timeout."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"the condition did not hold within {seconds:g} s"
        time.sleep(0.02)
