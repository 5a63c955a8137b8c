"""Supervisor of several server processes (workers) that share one port.

The workers listen on the same port (SO_REUSEPORT), and the operating system distributes new
connections among them. The supervisor starts the workers, starts a new one if one ends, and forwards
stop signals. It handles no requests and does not import torch.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RESTART_SECONDS = 1.0
"""Time between the end of a worker and the start of its replacement."""

WorkerTarget = Callable[[int, bool, Event], None]
"""A function that runs a worker until the worker is stopped.

Its arguments are the index of the worker, True if the worker listens before its runs are loaded,
and the event to set when the runs are loaded. The function is sent to a new process, so it must be
a function of a module or an object that can be pickled."""


@dataclass
class _ServerWorker:
    process: SpawnProcess
    ready: Event


@dataclass(frozen=True)
class SupervisorCallbacks:
    """Functions that the supervisor calls.

    ready:     called once, when all workers have loaded their runs
    restarted: called when a worker has ended and a new one is being started. The arguments are the
               index and the exit code of the worker that ended.
    """

    ready: Callable[[], None]
    restarted: Callable[[int, int], None]


class Supervisor:
    """Runs `count` server processes (workers) until a stop signal arrives."""

    def __init__(self, target: WorkerTarget, count: int, callbacks: SupervisorCallbacks) -> None:
        self._target, self._count, self._callbacks = target, count, callbacks
        self._workers: dict[int, _ServerWorker] = {}
        self._stopping = False
        self._was_ready = False

    def run(self) -> int:
        """Run the workers. Return the exit code: not 0 if a worker ended before all were ready."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop)
        for index in range(self._count):
            # Only the first worker serves the page while the runs load. The others listen when
            # they are ready, so that no request waits for their runs.
            self._start(index, listens_while_loading=index == 0)
        exit_code = 0
        while self._workers:
            ended = wait([worker.process.sentinel for worker in self._workers.values()], 0.1)
            if not self._was_ready and all(each.ready.is_set() for each in self._workers.values()):
                self._was_ready = True
                self._callbacks.ready()
            for index, worker in list(self._workers.items()):
                if worker.process.sentinel in ended:
                    code = self._handle_end(index, worker)
                    exit_code = exit_code or code
        return exit_code

    def _start(self, index: int, *, listens_while_loading: bool) -> None:
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        process = context.Process(
            target=_run_worker, args=(self._target, index, listens_while_loading, ready)
        )
        process.start()
        self._workers[index] = _ServerWorker(process, ready)

    def _handle_end(self, index: int, worker: _ServerWorker) -> int:
        """Start a new worker in place of one that ended, and return 0.

        If the worker ended before all workers were ready, stop the other workers instead, and
        return an exit code other than 0. If the supervisor is stopping, start no new worker.
        """
        worker.process.join()
        code = worker.process.exitcode or 0
        del self._workers[index]
        if self._stopping:
            return 0
        if not self._was_ready:
            self._stop_workers()
            return code or 1
        self._callbacks.restarted(index, code)
        time.sleep(RESTART_SECONDS)
        if not self._stopping:  # a stop signal may arrive during the sleep
            self._start(index, listens_while_loading=False)
        return 0

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stop_workers()

    def _stop_workers(self) -> None:
        """Tell all workers to finish their requests and end. A second call ends them at once."""
        self._stopping = True
        for worker in list(self._workers.values()):
            worker.process.terminate()


def _run_worker(
    target: WorkerTarget, index: int, listens_while_loading: bool, ready: Event
) -> None:
    # Ctrl-C in a terminal sends SIGINT to all processes of the group. The supervisor sends SIGTERM;
    # a second signal would end the worker before its requests are finished.
    os.setpgrp()
    threading.Thread(target=_stop_with_supervisor, daemon=True).start()
    target(index, listens_while_loading, ready)


def _stop_with_supervisor() -> None:
    """Wait until the supervisor ends, then stop this worker.

    Usually the supervisor stops its workers before it ends, but it cannot do so after SIGKILL.
    """
    supervisor = multiprocessing.parent_process()
    assert supervisor is not None
    supervisor.join()
    os.kill(os.getpid(), signal.SIGTERM)
