"""The batcher merges jobs of many requests, and their results do not depend on it."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqloom
from seqloom.analysis.search_inspection import SearchInspection
from seqloom.config.schema.decoding import BeamConfig
from seqloom.serving.server.batcher import (
    MAX_JOBS,
    Batcher,
    Job,
    JobStreamingCallback,
    JobType,
    select_batch,
)
from seqloom.text.vocabulary import END, SPECIAL_TOKENS
from support.async_runner import run_async
from support.server_process import ServerProcess

LETTERS = "abcd"


def random_texts(count: int) -> list[str]:
    random = Random(7)
    return ["".join(random.choices(LETTERS, k=random.randint(1, 20))) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("run", ["reverser", "transformer"])
def test_merged_requests_get_the_results_of_single_requests(
    server: ServerProcess, runs: dict[str, Path], run: str
) -> None:
    """Sixteen concurrent HTTP requests against one call per text in Python."""
    texts = random_texts(48)
    loaded = seqloom.load(runs[run])
    expected = [loaded.translate_n_best([text], 2, beam=3, attention=False)[0] for text in texts]

    def translate(text: str) -> Any:
        options = {"run": run, "beam": 3, "n_best": 2, "split": False}
        response = server.post_json("/api/translate", texts=[text], **options)
        return response["translations"][0]["parts"][0]["outputs"]

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(translate, texts))
    for predictions, outputs in zip(expected, results, strict=True):
        assert [output["text"] for output in outputs] == [one.text for one in predictions]
        assert [tuple(output["pieces"]) for output in outputs] == [
            one.pieces for one in predictions
        ]
        scores = [one.score for one in predictions]
        assert [output["score"] for output in outputs] == pytest.approx(scores, abs=1e-5)


@pytest.mark.slow
def test_outputs_that_are_continued_together_equal_the_inspected_search(
    server: ServerProcess, runs: dict[str, Path]
) -> None:
    inspection = SearchInspection.of(seqloom.load(runs["reverser"]), "abcd", BeamConfig(width=3))
    best = inspection.search(1).outputs[0].tokens
    begins = [
        [*best[:step], alternative.token]
        for step, alternatives in enumerate(inspection.alternatives(best[:3], 4))
        for alternative in alternatives
        if alternative.token >= len(SPECIAL_TOKENS) or alternative.token == END
    ]

    def continue_from(begin: list[int]) -> Any:
        fields = {"run": "reverser", "text": "abcd", "beam": 3, "begin": begin}
        return server.post_json("/api/continue", **fields)["output"]

    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(continue_from, begins))
    for begin, output in zip(begins, outputs, strict=True):
        expected = inspection.continue_from(begin)
        assert output["tokens"][: len(begin)] == begin
        assert output["tokens"] == list(expected.tokens)
        assert output["log_probabilities"] == pytest.approx(
            list(expected.log_probabilities), abs=1e-5
        )


@pytest.mark.slow
def test_samples_do_not_depend_on_other_requests(server: ServerProcess) -> None:
    prompts = random_texts(12)

    def complete(prompt: str) -> Any:
        response = server.post_json("/api/complete", prompts=[prompt], seed=9)
        return response["completions"][0]["outputs"][0]["text"]

    single = [complete(prompt) for prompt in prompts]
    with ThreadPoolExecutor(12) as pool:
        merged = list(pool.map(complete, prompts))
    assert single == merged


@dataclass(frozen=True)
class RecordingJobType:
    """Returns the payloads and records the batches. Blocks until `released` is set.

    started: set when the first batch is being processed
    """

    name: str = "recording"
    batches: list[list[Any]] = field(default_factory=list, compare=False, hash=False)
    released: threading.Event = field(default_factory=threading.Event, compare=False, hash=False)
    started: threading.Event = field(default_factory=threading.Event, compare=False, hash=False)

    def token_budget(self) -> int:
        return 100

    def process(self, jobs: Sequence[Job]) -> list[Any]:
        self.started.set()
        self.released.wait()
        self.batches.append([job.payload for job in jobs])
        if any(job.payload == "bad" for job in jobs):
            raise ValueError("bad")
        return [job.payload for job in jobs]

    def count_output_tokens(self, results: Sequence[Any]) -> int:
        return len(results)


def test_waiting_jobs_of_one_type_are_merged_by_length() -> None:
    job_type, other_type = RecordingJobType(), RecordingJobType("other")

    async def submit_all() -> list[Any]:
        batcher = Batcher("test")
        first = asyncio.ensure_future(batcher.submit(job_type, ["first"], [1]))
        await asyncio.to_thread(job_type.started.wait)  # it blocks the batcher
        sizes = [40, 5, 41, 4]
        others = [asyncio.ensure_future(batcher.submit(job_type, [n], [n])) for n in sizes]
        incompatible = asyncio.ensure_future(batcher.submit(other_type, ["incompatible"], [40]))
        await asyncio.sleep(0)  # the jobs are submitted now
        job_type.released.set()
        other_type.released.set()
        results = await asyncio.gather(first, *others, incompatible)
        batcher.close()
        return results

    assert run_async(submit_all()) == [["first"], [40], [5], [41], [4], ["incompatible"]]
    assert job_type.batches == [["first"], [40, 41], [5, 4]]
    assert other_type.batches == [["incompatible"]]


def test_cancelled_jobs_are_not_processed() -> None:
    job_type = RecordingJobType()

    async def submit_and_cancel() -> None:
        batcher = Batcher("test")
        first = asyncio.ensure_future(batcher.submit(job_type, ["first"], [1]))
        await asyncio.to_thread(job_type.started.wait)
        cancelled = asyncio.ensure_future(
            batcher.submit(job_type, ["cancelled", "cancelled too"], [1, 1])
        )
        kept = asyncio.ensure_future(batcher.submit(job_type, ["kept"], [1]))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(0)
        job_type.released.set()
        await asyncio.gather(first, kept)
        batcher.close()

    run_async(submit_and_cancel())
    assert job_type.batches == [["first"], ["kept"]]


def test_a_failing_job_does_not_affect_the_others_of_its_batch() -> None:
    job_type = RecordingJobType()
    job_type.released.set()

    async def submit_all() -> list[Any]:
        batcher = Batcher("test")
        submitted = [batcher.submit(job_type, [name], [1]) for name in ("good", "bad", "better")]
        results = await asyncio.gather(*submitted, return_exceptions=True)
        batcher.close()
        return results

    good, bad, better = run_async(submit_all())
    assert (good, better) == (["good"], ["better"])
    assert isinstance(bad, ValueError)


@given(st.lists(st.tuples(st.integers(1, 120), st.sampled_from("xy")), min_size=1, max_size=90))
def test_a_batch_has_one_type_fits_the_budget_and_contains_the_oldest_job(
    waiting: list[tuple[int, str]],
) -> None:
    loop = asyncio.new_event_loop()
    try:
        jobs = [
            Job(RecordingJobType(name), size, None, loop.create_future()) for size, name in waiting
        ]
        batch = select_batch(jobs)
    finally:
        loop.close()
    assert batch[0] is jobs[0]
    assert {job.job_type for job in batch} == {jobs[0].job_type}
    assert len(batch) <= MAX_JOBS
    assert len(batch) == 1 or len(batch) * max(job.size for job in batch) <= 100


@pytest.mark.parametrize("sizes", [(1, 2), (10, 20), (30, 90), (200, 300)])
def test_a_large_request_does_not_delay_a_later_small_one(sizes: tuple[int, int]) -> None:
    """The small request waits for at most two batches of the large one."""
    job_type = RecordingJobType()
    lengths = [sizes[index % 2] for index in range(10 * MAX_JOBS)]

    async def submit_all() -> None:
        batcher = Batcher("test")
        large = asyncio.ensure_future(batcher.submit(job_type, lengths, lengths))
        await asyncio.to_thread(job_type.started.wait)  # it blocks the batcher
        small = asyncio.ensure_future(batcher.submit(job_type, ["small"], [90]))
        await asyncio.sleep(0)  # the jobs are submitted now
        job_type.released.set()
        await asyncio.gather(large, small)
        batcher.close()

    run_async(submit_all())
    assert ["small" in batch for batch in job_type.batches].index(True) <= 2
    # Apart from the batch with the small request, batches contain jobs of one length.
    assert sum(len(set(batch)) > 1 for batch in job_type.batches) <= 2


def test_small_requests_do_not_delay_a_large_one_for_ever() -> None:
    """During each batch, as many small requests arrive as fit into a batch."""

    async def submit_all() -> list[list[Any]]:
        loop, batcher = asyncio.get_running_loop(), Batcher("test")
        small: list[asyncio.Future[Any]] = []

        async def submit_small(job_type: JobType) -> None:
            small.extend(
                asyncio.ensure_future(batcher.submit(job_type, ["small"], [1]))
                for _ in range(MAX_JOBS)
            )
            await asyncio.sleep(0)  # the requests are submitted now

        class Refilling(RecordingJobType):
            def process(self, jobs: Sequence[Job]) -> list[Any]:
                if len(self.batches) < 30:
                    asyncio.run_coroutine_threadsafe(submit_small(self), loop).result()
                return super().process(jobs)

        job_type = Refilling()
        job_type.released.set()
        await batcher.submit(job_type, ["large"] * 4 * MAX_JOBS, [1] * 4 * MAX_JOBS)
        while waiting := [request for request in small if not request.done()]:
            await asyncio.gather(*waiting)
        batcher.close()
        return job_type.batches

    batches = run_async(submit_all())
    assert max(index for index, batch in enumerate(batches) if "large" in batch) <= 8


def test_single_jobs_start_immediately_and_concurrent_jobs_are_merged() -> None:
    job_type = RecordingJobType()
    job_type.released.set()

    async def submit_all() -> None:
        batcher = Batcher("test")
        for _ in range(3):
            await batcher.submit(job_type, ["single"], [1])
        for name in "xy":
            jobs = [asyncio.ensure_future(batcher.submit(job_type, [name], [1])) for _ in range(5)]
            await asyncio.gather(*jobs)
        batcher.close()

    run_async(submit_all())
    assert job_type.batches[:3] == [["single"]] * 3
    assert job_type.batches[-1] == ["y"] * 5


@dataclass(eq=False)
class EarlyJobType:
    """Reports the result of the first job at once. The batch ends after `released`."""

    released: threading.Event = field(default_factory=threading.Event)

    def token_budget(self) -> int:
        return 100

    def process(self, jobs: Sequence[Job]) -> list[Any]:
        jobs[0].set_result(jobs[0].payload)
        assert self.released.wait(10)
        return [job.payload for job in jobs]

    def count_output_tokens(self, results: Sequence[Any]) -> int:
        return len(results)


def test_an_early_result_does_not_wait_for_the_rest_of_the_batch() -> None:
    job_type = EarlyJobType()

    async def submit_all() -> list[Any]:
        batcher = Batcher("test")
        blocker = asyncio.ensure_future(batcher.submit(job_type, ["blocker"], [1]))
        await blocker  # the batch itself is not finished yet
        first, second = (
            asyncio.ensure_future(batcher.submit(job_type, [name], [1]))
            for name in ("first", "second")
        )
        job_type.released.set()
        results = list(await asyncio.gather(first, second))
        batcher.close()
        return results

    assert run_async(submit_all()) == [["first"], ["second"]]


@dataclass(eq=False)
class FailingJobType:
    """Fails after it has reported the result of the first of several jobs."""

    batches: list[list[Any]] = field(default_factory=list)

    def token_budget(self) -> int:
        return 100

    def process(self, jobs: Sequence[Job]) -> list[Any]:
        self.batches.append([job.payload for job in jobs])
        if len(jobs) > 1:
            jobs[0].set_result("early")
            raise ValueError("bad batch")
        return [job.payload for job in jobs]

    def count_output_tokens(self, results: Sequence[Any]) -> int:
        return len(results)


def test_jobs_with_an_early_result_are_not_repeated_after_an_error() -> None:
    job_type = FailingJobType()
    output_tokens: list[int] = []

    async def submit_all() -> list[Any]:
        batcher = Batcher("test", lambda report: output_tokens.append(report.output_tokens))
        results = await batcher.submit(job_type, ["first", "second", "third"], [1, 1, 1])
        batcher.close()
        return results

    assert run_async(submit_all()) == ["early", "second", "third"]
    assert job_type.batches == [["first", "second", "third"], ["second"], ["third"]]
    assert output_tokens == [3]


@dataclass(eq=False)
class FailingStreamingJobType:
    """Streams the tokens 1, 2 and 3 to each job. A batch of several jobs fails after token 2."""

    def token_budget(self) -> int:
        return 100

    def process(self, jobs: Sequence[Job]) -> list[Any]:
        callback = JobStreamingCallback(jobs)
        for position in (1, 2, 3):
            if position == 3 and len(jobs) > 1:
                raise ValueError("bad batch")
            for index in range(len(jobs)):
                callback.on_token(index, position, token=position, log_probability=0.0)
        return [job.payload for job in jobs]

    def count_output_tokens(self, results: Sequence[Any]) -> int:
        return len(results)


def test_each_token_is_streamed_once_if_a_failed_batch_is_repeated() -> None:
    streamed: list[int] = []

    async def submit_all() -> list[Any]:
        batcher = Batcher("test")
        results = await batcher.submit(
            FailingStreamingJobType(),
            ["first", "second"],
            [1, 1],
            on_token=lambda token, log_probability: streamed.append(token),
        )
        batcher.close()
        return results

    assert run_async(submit_all()) == ["first", "second"]
    assert sorted(streamed) == [1, 1, 2, 2, 3, 3]


def test_two_calls_of_the_same_function_both_get_a_result() -> None:
    job_type = RecordingJobType()

    async def submit_all() -> list[Any]:
        batcher = Batcher("test")
        blocking = asyncio.ensure_future(batcher.submit(job_type, ["first"], [1]))
        await asyncio.to_thread(job_type.started.wait)  # it blocks the batcher
        calls = [asyncio.ensure_future(batcher.call(list)) for _ in range(2)]
        await asyncio.sleep(0)  # the jobs are submitted now
        job_type.released.set()
        results = await asyncio.wait_for(asyncio.gather(blocking, *calls), timeout=10)
        batcher.close()
        return results

    assert run_async(submit_all()) == [["first"], [], []]
