"""Worker processes that write shards.

A worker is a Python process that reads pickled jobs from its standard input and writes pickled
messages to its standard output. Unlike the processes of `multiprocessing`, it does not import the
program of its parent, so that a script needs no `if __name__ == "__main__"`. A worker ends when its
parent does.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqloom.core.errors import SeqloomError
from seqloom.data.preparation.jobs import ShardJob
from seqloom.data.preparation.records import Records
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.preparation.shard import write_shard

POLL_SECONDS = 0.1
"""Seconds between two calls of the progress callback."""

Jobs = Iterator[tuple[ShardJob, Records]]


def write_shards(
    request: CorpusRequest,
    folder: Path,
    jobs: Jobs,
    workers: int,
    progress: Callable[[int], None],
) -> None:
    """Write the shards of all jobs to `folder`, in this process or in several processes.

    workers:  number of processes. With 1, this process writes the shards
    progress: called at intervals with the number of records that have been read
    """
    if workers > 1:
        pool = _Pool(request, folder, workers)
        try:
            pool.run(jobs, progress)
        finally:
            pool.close()
        return
    finished = 0
    for job, records in jobs:
        finished += write_shard(request, job, records, folder, _added_to(finished, progress))


def _added_to(finished: int, progress: Callable[[int], None]) -> Callable[[int], None]:
    return lambda read: progress(finished + read)


class _Pool:
    """Passes jobs to worker processes. One thread per process waits for its messages."""

    def __init__(self, request: CorpusRequest, folder: Path, workers: int) -> None:
        self._setup = pickle.dumps((request, folder))
        self._jobs: queue.Queue[ShardJob | None] = queue.Queue(maxsize=workers)
        self._errors: list[BaseException] = []
        self._read: dict[int, int] = {}  # index of a shard -> number of records read
        self._processes = [_start_process() for _ in range(workers)]
        self._threads = [
            threading.Thread(target=self._serve, args=(process,), daemon=True)
            for process in self._processes
        ]

    def run(self, jobs: Jobs, progress: Callable[[int], None]) -> None:
        """Pass on all jobs and wait until they are finished. Raise the first error of a worker."""
        for thread in self._threads:
            thread.start()
        for job, _ in jobs:
            self._put(job, progress)
        for _ in self._threads:
            self._put(None, progress)
        for thread in self._threads:
            while thread.is_alive():
                thread.join(POLL_SECONDS)
                self._report(progress)
        self._report(progress)

    def _put(self, job: ShardJob | None, progress: Callable[[int], None]) -> None:
        while True:
            self._report(progress)
            try:
                self._jobs.put(job, timeout=POLL_SECONDS)
                return
            except queue.Full:
                continue

    def _report(self, progress: Callable[[int], None]) -> None:
        if self._errors:
            raise self._errors[0]
        progress(sum(list(self._read.values())))

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # bytes that the process has not read
                        pipe.close()

    def _serve(self, process: "subprocess.Popen[bytes]") -> None:
        """Pass jobs to one process until there are no more."""
        try:
            assert process.stdin is not None
            process.stdin.write(self._setup)
            while (job := self._jobs.get()) is not None:
                pickle.dump(job, process.stdin)
                process.stdin.flush()
                self._wait_for(process, job)
                if job.temporary is not None:
                    job.temporary.unlink()
        except (OSError, EOFError, pickle.UnpicklingError):
            self._errors.append(_ended_worker(process))
        except BaseException as error:
            self._errors.append(error)

    def _wait_for(self, process: "subprocess.Popen[bytes]", job: ShardJob) -> None:
        """Read the messages of a process until it has finished a job."""
        assert process.stdout is not None
        while True:
            kind, value = pickle.load(process.stdout)
            if kind == "error":
                raise value
            if kind == "finished":
                return
            self._read[job.index] = value


def _ended_worker(process: "subprocess.Popen[bytes]") -> SeqloomError:
    code = process.wait()
    return SeqloomError(
        f"a worker process that prepares data ended with code {code}, perhaps because memory ran "
        "out. Finished shards are kept. Start again with fewer processes: --set data.workers=1"
    )


def _start_process() -> "subprocess.Popen[bytes]":
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        "from seqloom.data.preparation.workers import run_worker; run_worker()"
    )
    # In a session of its own, the process does not receive Ctrl-C: its parent ends it.
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def run_worker() -> None:
    """Run jobs from standard input until it is closed."""
    inbox, outbox = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # a message must not be mixed with what other code prints
    request, folder = pickle.load(inbox)
    jobs: queue.Queue[ShardJob] = queue.Queue()

    def receive() -> None:
        while True:
            try:
                jobs.put(pickle.load(inbox))
            except (EOFError, OSError):  # the parent has ended
                os._exit(1)

    def send(kind: str, value: Any = None) -> None:
        pickle.dump((kind, value), outbox)
        outbox.flush()

    threading.Thread(target=receive, daemon=True).start()
    while True:
        job = jobs.get()
        try:
            write_shard(request, job, job.read(request), folder, lambda read: send("read", read))
            send("finished")
        except SeqloomError as error:
            send("error", error)
        except Exception:
            send("error", RuntimeError(f"in a worker process:\n{traceback.format_exc()}"))
