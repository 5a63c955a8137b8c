"""Groups jobs of many requests into batches. One thread per run processes the batches.

When the thread is free, it takes one job and the jobs of the same type that are closest to this job
in length. These jobs are one batch. Cancelled jobs are dropped.

Requests take turns, so that a large request does not delay the others. The jobs of a request are
divided into groups of similar length, each for one batch. The first group has the next turn, the
second group has the turn after it, and so on. The thread takes the oldest of the jobs with the lowest
turn.

If no job is waiting, the thread waits until a job arrives. Then it usually processes the job at
once. Under load, it waits MERGE_WINDOW seconds longer, so that more jobs can join the batch. The
batcher is under load if more than one job was waiting when the thread took the previous batch.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

log = logging.getLogger(__name__)

MERGE_WINDOW = 0.004
"""Under load, an idle thread waits this many seconds after the first new job, so that more jobs can
join its batch."""
MAX_JOBS = 64
"""Maximum number of jobs per batch."""


class JobType(Protocol):
    """Defines how jobs are processed. A batch contains only jobs whose types are equal (==)."""

    def token_budget(self) -> int:
        """Maximum number of tokens in a batch, including padding."""
        ...

    def process(self, jobs: Sequence["Job"]) -> Sequence[Any]:
        """Process a batch. Returns one result per job, in the same order.

        If the result of a job is known before those of the other jobs, this method may pass it to
        the request at once, with `Job.set_result`. The client can then send its next text early
        enough to join the next batch.
        """
        ...

    def count_output_tokens(self, results: Sequence[Any]) -> int:
        """Return the number of output tokens in the results that `process` returned."""
        ...


OnToken = Callable[[int, float], None]
"""Called with each token and its log-probability, in the thread that runs the search."""


@dataclass(frozen=True)
class BatchReport:
    """What the metrics record about a processed batch.

    waited:        for each job, the seconds between its arrival and the start of the batch
    seconds:       time to process the batch
    source_tokens: number of tokens of all inputs
    output_tokens: number of tokens of all outputs
    """

    waited: tuple[float, ...]
    seconds: float
    source_tokens: int
    output_tokens: int


OnBatch = Callable[[BatchReport], None]
"""Called after each batch."""


@dataclass(eq=False)
class Job:
    """One input to process.

    size:            number of source tokens
    payload:         the input, as the job type expects it
    future:          receives the result; cancelling it cancels the job
    on_token:        called with each token as it is generated. None: tokens are not streamed.
    arrival:         time of `time.perf_counter` at which the job was created
    turn:            jobs with a lower number are processed first
    early:           the result, if `set_result` received it before the batch was finished;
                     otherwise None
    streamed_tokens: number of tokens that were passed to `on_token`
    """

    job_type: JobType
    size: int
    payload: Any
    future: asyncio.Future[Any]
    on_token: OnToken | None = None
    arrival: float = field(default_factory=time.perf_counter)
    turn: int = 0
    early: Any = None
    streamed_tokens: int = 0

    @property
    def cancelled(self) -> bool:
        """True if the job is cancelled, so that no request waits for its result.

        Any thread may read this property.
        """
        return self.future.cancelled()

    def set_result(self, result: Any) -> None:
        """Return the result of this job to its request, before the rest of the batch is finished.

        The thread that processes the batch calls this method.
        """
        self.early = result
        _set_results([self], [result])


class JobStreamingCallback:
    """Streaming callback for the search of a batch.

    Passes generated tokens to the jobs, and tells the search which jobs are cancelled.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs

    def is_cancelled(self, job_index: int) -> bool:
        return self._jobs[job_index].cancelled

    def is_streaming(self, job_index: int) -> bool:
        return self._jobs[job_index].on_token is not None and not self._jobs[job_index].cancelled

    def on_token(self, job_index: int, position: int, token: int, log_probability: float) -> None:
        job = self._jobs[job_index]
        assert job.on_token is not None
        # A search that is repeated after an error generates its first tokens again. Skip the tokens
        # that were already sent. The job counts them, because another batch may repeat the search.
        if position > job.streamed_tokens:
            job.streamed_tokens = position
            job.on_token(token, log_probability)


@dataclass(frozen=True, eq=False)
class FunctionCall:
    """Job type that calls a function. Such a job is always alone in its batch.

    A batch contains only jobs of equal types, and no two function calls are equal.
    """

    function: Callable[[], Any]

    def token_budget(self) -> int:
        return 0

    def process(self, jobs: Sequence[Job]) -> Sequence[Any]:
        return [self.function()]

    def count_output_tokens(self, results: Sequence[Any]) -> int:
        return 0


class Batcher:
    """A queue of jobs and the thread that processes them."""

    def __init__(self, name: str, on_batch: OnBatch = lambda report: None) -> None:
        self._on_batch = on_batch
        self._waiting: list[Job] = []
        self._changed = threading.Condition()
        self._closed = False
        self._was_under_load = False
        self._next_turn = 0
        self._thread = threading.Thread(target=self._work, name=f"batcher {name}", daemon=True)
        self._thread.start()

    async def submit(
        self,
        job_type: JobType,
        payloads: Sequence[Any],
        sizes: Sequence[int],
        on_token: OnToken | None = None,
    ) -> list[Any]:
        """Create one job per payload, wait until all are processed, and return their results.

        The results are in the order of the payloads.

        Cancelling this coroutine cancels the jobs.
        """
        loop = asyncio.get_running_loop()
        jobs = [
            Job(job_type, size, payload, loop.create_future(), on_token)
            for payload, size in zip(payloads, sizes, strict=True)
        ]
        with self._changed:
            set_turns(jobs, self._next_turn)
            self._waiting += jobs
            self._changed.notify()
        futures = [job.future for job in jobs]
        try:
            return await asyncio.gather(*futures)
        finally:
            for future in futures:  # if one job failed, the results of the others are not needed
                future.cancel()

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a function in the batcher's thread and return its result."""
        [result] = await self.submit(FunctionCall(function), [None], [0])
        return result

    def close(self) -> None:
        """Process the jobs that are still waiting, then end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next_batch():
            start = time.perf_counter()
            output_tokens = self._process(batch)
            self._on_batch(
                BatchReport(
                    waited=tuple(start - job.arrival for job in batch),
                    seconds=time.perf_counter() - start,
                    source_tokens=sum(job.size for job in batch),
                    output_tokens=output_tokens,
                )
            )

    def _next_batch(self) -> list[Job]:
        """Wait for the next batch. Returns [] if the batcher is closed and no job is left."""
        with self._changed:
            if self._drop_cancelled() == 0 and not self._wait_for_jobs():
                return []
            batch = select_batch(self._waiting)
            self._next_turn = batch[0].turn + 1
            self._was_under_load = len(self._waiting) > 1
            selected = set(map(id, batch))
            self._waiting = [job for job in self._waiting if id(job) not in selected]
            return batch

    def _drop_cancelled(self) -> int:
        """Remove cancelled jobs. Returns the number of jobs left."""
        self._waiting = [job for job in self._waiting if not job.cancelled]
        return len(self._waiting)

    def _wait_for_jobs(self) -> bool:
        """Wait until a job arrives. Under load, wait MERGE_WINDOW seconds longer for more jobs.

        Returns False if the batcher is closed and no job is left.
        """
        while True:
            while not self._drop_cancelled():
                if self._closed:
                    return False
                self._changed.wait()
            end = time.monotonic() + (MERGE_WINDOW if self._was_under_load else 0)
            while (remaining := end - time.monotonic()) > 0 and not self._closed:
                self._changed.wait(remaining)
            if self._drop_cancelled():
                return True

    def _process(self, batch: Sequence[Job]) -> int:
        """Process a batch and pass the results to the jobs. Returns the number of output tokens."""
        job_type = batch[0].job_type
        try:
            results = job_type.process(batch)
        except Exception as error:
            unanswered = [job for job in batch if job.early is None]
            if len(batch) > 1:  # process the jobs one by one, so that only faulty jobs fail
                answered = [job.early for job in batch if job.early is not None]
                return job_type.count_output_tokens(answered) + sum(
                    self._process([job]) for job in unanswered
                )
            _set_results(batch, [error])
            return 0
        _set_results(batch, results)
        return job_type.count_output_tokens(results)


def set_turns(jobs: Sequence[Job], first: int) -> None:
    """Divide the jobs of a request into groups, and set the turn of each job.

    A group has jobs of similar length, and it is not larger than a batch may be.

    first: turn of the first group
    """
    turn, count = first, 0
    for job in sorted(jobs, key=lambda job: job.size):
        if count == MAX_JOBS or job.size * (count + 1) > job.job_type.token_budget():
            turn, count = (turn + 1 if count else turn), 0
        job.turn = turn
        count += 1


def select_batch(waiting: Sequence[Job]) -> list[Job]:
    """Return the oldest job of the lowest turn and the jobs of the same type that go best with it.

    These are first the jobs of the same turn, then the others, each sorted by how close they are in
    length. The batch has at most MAX_JOBS jobs and stays within the token budget of the job type.
    """
    oldest = min(waiting, key=lambda job: job.turn)  # the first of several
    budget = oldest.job_type.token_budget()
    compatible = [job for job in waiting if job.job_type == oldest.job_type]
    # The sort is stable: `oldest` stays first.
    compatible.sort(key=lambda job: (job.turn > oldest.turn, abs(job.size - oldest.size)))
    batch: list[Job] = []
    longest = 0
    for job in compatible[:MAX_JOBS]:
        longest = max(longest, job.size)
        if batch and longest * (len(batch) + 1) > budget:
            break
        batch.append(job)
    return batch


def _set_results(jobs: Sequence[Job], results: Sequence[Any]) -> None:
    """Pass each job's result to its future. A result that is an exception makes the future fail.

    All futures are set in one callback of the event loop.
    """

    def set_results() -> None:
        for job, result in zip(jobs, results, strict=True):
            if job.future.done():
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    loop = jobs[0].future.get_loop()
    try:
        loop.call_soon_threadsafe(set_results)
    except RuntimeError:  # the event loop is closed, so no request waits for a result
        log.debug("the event loop is closed; dropping %d results", len(jobs))
