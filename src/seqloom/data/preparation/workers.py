"""Worker processes that write the shards of a prepared corpus or compute statistics of data files.

A worker is a Python process that reads jobs from its standard input and writes messages to its
standard output. Unlike the processes of `multiprocessing`, it does not import the program of its
parent, so that a script needs no `if __name__ == "__main__"`. A worker ends when its parent does.
"""

import os
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from seqloom.core.errors import SeqloomError
from seqloom.data.preparation.jobs import ShardJob
from seqloom.data.preparation.records import Records
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.preparation.shard import write_shard

STDIN, STDOUT = 0, 1  # file descriptors of a process
POLL_SECONDS = 0.1
"""Seconds between two calls of the progress callback."""

Jobs = Iterator[tuple[ShardJob, Records]]
Progress = Callable[[int], None]
Work = Callable[[Any, Progress], Any]
"""A function that a worker calls to do a job. It returns the result of the job. Its arguments are
the job, and a function to call at intervals with the number of records read so far. It must be a
module-level function, or a `functools.partial` of one, so that it can be pickled."""


def write_shards(
    request: CorpusRequest,
    folder: Path,
    jobs: Jobs,
    workers: int,
    progress: Progress,
) -> None:
    """Write the shards of all jobs to `folder`, in this process or in several processes.

    workers:  number of processes. With 1, this process writes the shards
    progress: called at intervals with the number of examples and invalid lines read so far
    """
    if workers > 1:
        work = partial(_write_shard_of_job, request, folder)
        run_in_processes(work, (job for job, _ in jobs), workers, progress)
        return
    finished = 0
    for job, records in jobs:
        finished += write_shard(request, job, records, folder, _added_to(finished, progress))


def _added_to(finished: int, progress: Progress) -> Progress:
    return lambda read: progress(finished + read)


def _write_shard_of_job(
    request: CorpusRequest, folder: Path, job: ShardJob, progress: Progress
) -> None:
    """Write the shard of a job. Runs in a worker process."""
    write_shard(request, job, job.read(request), folder, progress)
    if job.temporary is not None:
        job.temporary.unlink()


def run_in_processes(
    work: Work, jobs: Iterable[Any], workers: int, progress: Progress
) -> list[Any]:
    """Call `work` for each job in worker processes. Return the results, in the order of the jobs.

    progress: called at intervals with the number of examples and invalid lines that all workers
              have read
    """
    pool = _Pool(work, workers)
    try:
        return pool.run(jobs, progress)
    finally:
        pool.close()


def can_use_processes(settings: object) -> bool:
    """Return True if worker processes can be used with these settings.

    Return False on Windows, where workers cannot read jobs from standard input. Return False if
    `settings` cannot be pickled, for example because of a class that is defined outside seqloom.
    """
    if os.name == "nt":
        return False
    try:
        ForkingPickler.dumps(settings)
    except Exception:  # pickling raises errors of several types
        return False
    return True


class _PreparationWorker:
    """A worker process and the connections to it."""

    def __init__(self) -> None:
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            "from seqloom.data.preparation.workers import run_worker; run_worker()"
        )
        # In a session of its own, the process does not receive Ctrl-C: its parent ends it.
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.jobs = Connection(os.dup(self.process.stdin.fileno()), readable=False)
        self.messages = Connection(os.dup(self.process.stdout.fileno()), writable=False)
        self.process.stdin.close()
        self.process.stdout.close()

    def end(self) -> None:
        """Kill the process. Its unfinished shard is lost."""
        self.process.kill()
        self.process.wait()


class _Pool:
    """Passes jobs to worker processes. One thread per process waits for its messages."""

    def __init__(self, work: Work, workers: int) -> None:
        self._work = work
        self._jobs: queue.Queue[tuple[int, Any] | None] = queue.Queue(maxsize=workers)
        self._errors: list[BaseException] = []
        self._read: dict[int, int] = {}  # index of a job -> number of records read
        self._results: dict[int, Any] = {}  # index of a job -> its result
        self._workers = [_PreparationWorker() for _ in range(workers)]
        self._threads = [
            threading.Thread(target=self._serve, args=(worker,), daemon=True)
            for worker in self._workers
        ]

    def run(self, jobs: Iterable[Any], progress: Progress) -> list[Any]:
        """Pass all jobs to the workers and wait until they are finished. Return the results, in the
        order of the jobs. Raise the first error of a worker."""
        for thread in self._threads:
            thread.start()
        for item in enumerate(jobs):
            self._put(item, progress)
        for _ in self._threads:
            self._put(None, progress)
        for thread in self._threads:
            while thread.is_alive():
                thread.join(POLL_SECONDS)
                self._report(progress)
        self._report(progress)
        return [self._results[index] for index in sorted(self._results)]

    def _put(self, item: tuple[int, Any] | None, progress: Progress) -> None:
        while True:
            self._report(progress)
            try:
                self._jobs.put(item, timeout=POLL_SECONDS)
                return
            except queue.Full:
                continue

    def _report(self, progress: Progress) -> None:
        if self._errors:
            raise self._errors[0]
        progress(sum(list(self._read.values())))

    def close(self) -> None:
        for worker in self._workers:
            worker.end()

    def _serve(self, worker: _PreparationWorker) -> None:
        """Pass jobs to one process until there are no more."""
        try:
            worker.jobs.send(self._work)
            while (item := self._jobs.get()) is not None:
                index, job = item
                worker.jobs.send(job)
                self._results[index] = self._wait_for(worker, index)
        except (OSError, EOFError):
            self._errors.append(_ended_worker(worker))
        except BaseException as error:
            self._errors.append(error)

    def _wait_for(self, worker: _PreparationWorker, index: int) -> Any:
        """Read the messages of a process until it has finished a job. Return the result."""
        while True:
            kind, value = worker.messages.recv()
            if kind == "error":
                raise value
            if kind == "finished":
                return value
            self._read[index] = value


def _ended_worker(worker: _PreparationWorker) -> SeqloomError:
    return SeqloomError(
        f"a worker process that reads data ended with code {worker.process.wait()}, perhaps "
        "because memory ran out. Finished shards are kept. Start again with fewer processes: "
        "--set data.workers=1"
    )


def run_worker() -> None:
    """Run jobs from standard input until it is closed."""
    inbox = Connection(os.dup(STDIN), writable=False)
    outbox = Connection(os.dup(STDOUT), readable=False)
    sys.stdout = sys.stderr  # what other code prints must not be mixed with messages
    jobs: queue.Queue[Any] = queue.Queue()
    try:
        arguments = (inbox.recv(), jobs, outbox)
        # If the parent ends, the main thread ends and with it the process: daemon threads do not
        # keep a process alive.
        threading.Thread(target=_run_jobs, args=arguments, daemon=True).start()
        while True:
            jobs.put(inbox.recv())
    except EOFError:
        return


def _run_jobs(work: Work, jobs: "queue.Queue[Any]", outbox: Connection) -> None:
    while True:
        job = jobs.get()
        try:
            result = work(job, lambda read: outbox.send(("read", read)))
            outbox.send(("finished", result))
        except SeqloomError as error:
            outbox.send(("error", error))
        except Exception:
            problem = f"in a worker process:\n{traceback.format_exc()}"
            outbox.send(("error", RuntimeError(problem)))
