"""A batch too large for a GPU's memory is done in halves, and nothing comes out otherwise."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.core.batch import Source
from seqloom.core.errors import DataError
from seqloom.models.interface import Memory, State, Step
from seqloom.models.seq2seq import Model
from seqloom.runs.batching import halves, run_in_halves
from seqloom.runs.options import TEXT_ONLY
from seqloom.runs.predictor import Predictor
from seqloom.runs.run import Run, load
from seqloom.serving.server.batcher import FunctionCall, Job, JobStreamingCallback
from seqloom.tasks.task import ModelInput
from seqloom.training.loop import train
from tiny_runs import recipe

TEXTS = ["abc", "ba", "dcba", "a", "cc", "bad", "cab"]
FULL = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4 GiB"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("fitting") / "run"
    train(recipe(), folder)
    return load(folder)


def room_for(sources: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A memory that holds no more than so many at once; how many it was asked to hold."""
    ample, asked = Predictor.encode, []

    def encode(self: Predictor, batch: Sequence[ModelInput]) -> Memory:
        asked.append(len(batch))
        if len(batch) > sources:
            raise torch.OutOfMemoryError(FULL)
        return ample(self, batch)

    monkeypatch.setattr(Predictor, "encode", encode)
    return asked


@given(st.lists(st.integers(), min_size=1, max_size=40), st.integers(1, 9))
def test_parts_fit_and_together_are_the_whole(numbers: list[int], room: int) -> None:
    def work(some: list[int]) -> list[int]:
        if len(some) > room:
            raise torch.OutOfMemoryError(FULL)
        return [2 * each for each in some]

    parts = run_in_halves(work, numbers, halves)
    assert [each for part in parts for each in part] == [2 * each for each in numbers]
    assert all(len(part) <= room for part in parts)


@pytest.mark.parametrize(
    "decoding",
    [GreedyConfig(), BeamConfig(width=3), SampleConfig(seed=5)],
    ids=["greedy", "beam", "sample"],
)
def test_translations_are_the_same(
    run: Run, decoding: DecodingConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ample = run.translate(TEXTS, decoding=decoding)
    asked = room_for(2, monkeypatch)
    for one, other in zip(ample, run.translate(TEXTS, decoding=decoding), strict=True):
        assert (one.text, one.pieces) == (other.text, other.pieces)
        assert one.score == pytest.approx(other.score, abs=1e-5)
    assert max(asked) == len(TEXTS), "it was never too much"


class Listeners:
    """They note what they hear of each input."""

    def __init__(self) -> None:
        self.heard: dict[int, list[int]] = {}

    def is_cancelled(self, number: int) -> bool:
        return False

    def is_streaming(self, number: int) -> bool:
        return True

    def on_token(self, number: int, place: int, token: int, log_probability: float) -> None:
        self.heard.setdefault(number, []).append(token)


@pytest.mark.parametrize("room", [2, len(TEXTS)])
def test_everybody_hears_the_tokens_of_their_own_text(
    run: Run, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though texts are sorted by length, and parted where they do not fit."""
    predictor = Predictor(run.model, run.task, torch.device("cpu"))
    prepared = [run.task.prepare(text) for text in TEXTS]
    room_for(room, monkeypatch)
    audience = Listeners()
    found = predictor.predict_inputs(
        prepared, GreedyConfig(), TEXT_ONLY, range(len(TEXTS)), callback=audience
    )
    for number, (best, *_) in enumerate(found):
        heard = audience.heard.get(number, [])
        assert heard == list(best.tokens)[: len(heard)]
    assert any(audience.heard.values())


def test_nobody_hears_a_token_twice_though_a_search_is_done_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here memory runs out in the middle of the search, when the first tokens have been told."""
    ample, step = Predictor(run.model, run.task, torch.device("cpu")), type(run.model.decoder).step
    steps = failures = 0

    def step_until_full(self: Any, tokens: Tensor, state: State) -> Step:
        nonlocal steps, failures
        steps += 1
        if len(tokens) > 4 and steps > 1:
            failures += 1
            raise torch.OutOfMemoryError(FULL)
        return step(self, tokens, state)

    monkeypatch.setattr(type(run.model.decoder), "step", step_until_full)
    heard: list[list[int]] = [[] for _ in TEXTS]

    def noted(mine: list[int], token: int, log_probability: float) -> None:
        mine.append(token)

    with asyncio.Runner() as runner:
        waits = runner.get_loop().create_future
        errands = [Job(FunctionCall(list), 1, None, waits(), partial(noted, one)) for one in heard]
        prepared = [run.task.prepare(text) for text in TEXTS]
        found = ample.predict_inputs(
            prepared,
            GreedyConfig(),
            TEXT_ONLY,
            range(len(TEXTS)),
            callback=JobStreamingCallback(errands),
        )
    assert failures == 1
    for tokens, (best, *_) in zip(heard, found, strict=True):
        assert tokens == list(best.tokens)[: len(tokens)]
        assert len(tokens) >= len(best.tokens) - 1


def test_scores_are_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ample = run.score(TEXTS, TEXTS)
    asked = room_for(3, monkeypatch)
    for one, other in zip(ample, run.score(TEXTS, TEXTS), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)
    assert max(asked) == len(TEXTS), "it was never too much"


def test_the_loss_of_a_split_is_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ample = run.evaluate("dev")
    encode, asked = Model.encode, []

    def narrow(self: Model, source: Source | None, size: int, *more: Any) -> Memory:
        asked.append(size)
        if size > 5:
            raise torch.OutOfMemoryError(FULL)
        return encode(self, source, size, *more)

    monkeypatch.setattr(Model, "encode", narrow)
    for one, other in zip(ample.scores, run.evaluate("dev").scores, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-5), one.name
    assert max(asked) > 5, "it was never too much"


def test_a_line_that_does_not_fit_alone_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    room_for(0, monkeypatch)
    with pytest.raises(DataError) as told:
        run.translate(TEXTS)
    text = str(told.value)
    assert "a single line does not fit into the memory of the GPU: CUDA out of memory." in text
    assert "narrower beam" in text
