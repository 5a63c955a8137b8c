"""The harness's side of the conversation: start a contender, ask it for a window, let it go."""

import json
import os
import queue
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.contenders import ROOT, Contender

ENVIRONMENT = dict(os.environ)
"""As it was before seqloom was imported here, which sets what is good for itself."""
START_SECONDS = 300
GRACE_SECONDS = 240
"""A window is over after its seconds and the step that was under way then."""


class Broken(Exception):
    """A contender that cannot be measured, and why."""


class Worker:
    """One contender's process. Between two windows it is blocked and uses no time."""

    def __init__(self, contender: Contender, arguments: list[str], logs: Path) -> None:
        self.contender = contender
        self.log = logs / f"{contender.key}.log"
        if not contender.python.exists():
            raise Broken("not installed: run make bench-peers")
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(
                [str(contender.python), "-m", contender.module, *arguments],
                cwd=ROOT,
                env={**ENVIRONMENT, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.about: dict[str, Any] = {}

    def wait_until_ready(self) -> None:
        self.about = self._answer(START_SECONDS)["ready"]

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Broken(self._last_words()) from None
        return self._answer(request.get("seconds", 0) + GRACE_SECONDS)

    def close(self) -> None:
        """Nobody is left to answer to: it goes, or is made to."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._listener.join()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.process.kill()
            raise Broken(f"no answer in {seconds:.0f} s") from None
        if not line:
            raise Broken(self._last_words())
        return dict(json.loads(line))

    def _last_words(self) -> str:
        self.process.wait()
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip()[:300] if lines else f"exit code {self.process.returncode}"
