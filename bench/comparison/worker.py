"""The harness's side of the measurement protocol: the process of one system."""

import json
import os
import queue
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.comparison.systems import ROOT, System

ENVIRONMENT = dict(os.environ)
"""A copy from before the import of seqloom, which sets environment variables for itself."""
START_SECONDS = 300
GRACE_SECONDS = 240
"""Time to finish the current step after the end of a time window."""


class WorkerError(Exception):
    """A system cannot be measured. The message is the reason."""


class Worker:
    """The process of one system. Between two time windows it is blocked and uses no CPU time."""

    def __init__(self, system: System, arguments: list[str], logs: Path) -> None:
        self.system = system
        self.log = logs / f"{system.key}.log"
        if not system.python.exists():
            raise WorkerError("not installed: run make bench-peers")
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(
                [str(system.python), "-m", system.module, *arguments],
                cwd=ROOT,
                env={**ENVIRONMENT, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()
        self.description: dict[str, Any] = {}

    def wait_until_ready(self) -> None:
        """Wait until the system has started, and store its description."""
        self.description = self._read_response(START_SECONDS)["ready"]

    def request(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the response."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(self._failure_reason()) from None
        return self._read_response(request.get("seconds", 0) + GRACE_SECONDS)

    def close(self) -> None:
        """Close stdin, which ends the process, and kill it after ten seconds."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")

    def _read_response(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.process.kill()
            raise WorkerError(f"no response within {seconds:.0f} s") from None
        if not line:
            raise WorkerError(self._failure_reason())
        return dict(json.loads(line))

    def _failure_reason(self) -> str:
        """The last line of the log, or the exit code if the log is empty."""
        self.process.wait()
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip()[:300] if lines else f"exit code {self.process.returncode}"
