"""Errands of many people, carried out together: nobody can tell."""

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
from calling_server import Server
from seqloom.serving.batcher import MOST, Batcher, Errand, choose

LETTERS = "abcd"


def texts(count: int) -> list[str]:
    draw = Random(7)
    return ["".join(draw.choices(LETTERS, k=draw.randint(1, 20))) for _ in range(count)]


@pytest.mark.parametrize("run", ["reverser", "transformer"])
def test_merged_answers_are_those_of_single_requests(
    server: Server, runs: dict[str, Path], run: str
) -> None:
    """Over HTTP, sixteen at a time, against the run asked directly for one text after another."""
    asked = texts(48)
    loaded = seqloom.load(runs[run])
    own = [loaded.translate_n_best([text], 2, beam=3, attention=False)[0] for text in asked]

    def one(text: str) -> Any:
        found = server.ask("/api/translate", run=run, texts=[text], beam=3, n_best=2, split=False)
        return found["translations"][0]["parts"][0]["outputs"]

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, asked))
    for mine, found in zip(own, answers, strict=True):
        assert [one["text"] for one in found] == [one.text for one in mine]
        assert [tuple(one["pieces"]) for one in found] == [one.pieces for one in mine]
        scores = [one.score for one in mine]
        assert [one["score"] for one in found] == pytest.approx(scores, abs=1e-5)


def test_samples_do_not_depend_on_who_else_asks(server: Server) -> None:
    prompts = texts(12)
    alone = [server.ask("/api/complete", prompts=[one], seed=9)["completions"] for one in prompts]
    with ThreadPoolExecutor(12) as pool:
        together = list(
            pool.map(
                lambda one: server.ask("/api/complete", prompts=[one], seed=9)["completions"],
                prompts,
            )
        )
    for single, merged in zip(alone, together, strict=True):
        assert single[0]["outputs"][0]["text"] == merged[0]["outputs"][0]["text"]


@dataclass(frozen=True)
class Noting:
    """Gives back what it is given, and notes with whom."""

    name: str = "noting"
    batches: list[list[Any]] = field(default_factory=list, compare=False, hash=False)
    free: threading.Event = field(default_factory=threading.Event, compare=False, hash=False)

    def room(self) -> int:
        return 100

    def do(self, errands: Sequence[Errand]) -> list[Any]:
        self.free.wait()
        self.batches.append([errand.work for errand in errands])
        if any(errand.work == "bad" for errand in errands):
            raise ValueError("bad")
        return [errand.work for errand in errands]


def test_what_waits_travels_together_by_length() -> None:
    manner, other = Noting(), Noting("other")

    async def everything() -> list[Any]:
        batcher = Batcher("test")
        first = asyncio.ensure_future(batcher.ask(manner, ["first"], [1]))
        await asyncio.sleep(0.05)  # under way, and waiting to be free
        sizes = [40, 5, 41, 4]
        rest = [asyncio.ensure_future(batcher.ask(manner, [size], [size])) for size in sizes]
        strange = asyncio.ensure_future(batcher.ask(other, ["strange"], [40]))
        await asyncio.sleep(0.05)
        manner.free.set()
        other.free.set()
        found = await asyncio.gather(first, *rest, strange)
        batcher.close()
        return found

    assert asyncio.run(everything()) == [["first"], [40], [5], [41], [4], ["strange"]]
    assert manner.batches == [["first"], [40, 41], [5, 4]]
    assert other.batches == [["strange"]]


def test_who_has_gone_is_not_worked_for() -> None:
    manner = Noting()

    async def everything() -> None:
        batcher = Batcher("test")
        first = asyncio.ensure_future(batcher.ask(manner, ["first"], [1]))
        await asyncio.sleep(0.05)
        leaving = asyncio.ensure_future(batcher.ask(manner, ["leaving", "too"], [1, 1]))
        staying = asyncio.ensure_future(batcher.ask(manner, ["staying"], [1]))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        manner.free.set()
        await asyncio.gather(first, staying)
        batcher.close()

    asyncio.run(everything())
    assert manner.batches == [["first"], ["staying"]]


def test_one_that_fails_takes_no_other_along() -> None:
    manner = Noting()
    manner.free.set()

    async def everything() -> list[Any]:
        batcher = Batcher("test")
        asked = [batcher.ask(manner, [one], [1]) for one in ("good", "bad", "better")]
        found = await asyncio.gather(*asked, return_exceptions=True)
        batcher.close()
        return found

    good, bad, better = asyncio.run(everything())
    assert (good, better) == (["good"], ["better"])
    assert isinstance(bad, ValueError)


@given(st.lists(st.tuples(st.integers(1, 120), st.sampled_from("xy")), min_size=1, max_size=90))
def test_a_batch_is_of_one_kind_fits_and_holds_the_oldest(waiting: list[tuple[int, str]]) -> None:
    loop = asyncio.new_event_loop()
    try:
        errands = [Errand(Noting(name), size, None, loop.create_future()) for size, name in waiting]
        batch = choose(errands)
    finally:
        loop.close()
    assert batch[0] is errands[0]
    assert {one.manner for one in batch} == {errands[0].manner}
    assert len(batch) <= MOST
    assert len(batch) == 1 or len(batch) * max(one.size for one in batch) <= 100


def test_one_who_is_alone_does_not_wait_and_company_is_waited_for() -> None:
    manner = Noting()
    manner.free.set()

    async def everything() -> None:
        batcher = Batcher("test")
        for _ in range(3):
            await batcher.ask(manner, ["alone"], [1])
        for name in "xy":
            asked = [asyncio.ensure_future(batcher.ask(manner, [name], [1])) for _ in range(5)]
            await asyncio.gather(*asked)
        batcher.close()

    asyncio.run(everything())
    assert manner.batches[:3] == [["alone"]] * 3
    assert manner.batches[-1] == ["y"] * 5
