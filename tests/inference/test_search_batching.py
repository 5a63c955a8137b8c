"""Batches for decoding: grouping by length, and halving when GPU memory runs out."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.core.errors import DataError
from seqloom.data.modalities.images import IMAGE_TOKENS, ImageInput
from seqloom.data.modalities.text import TextInput
from seqloom.decoding.fast import captured
from seqloom.decoding.fast.captured import CapturedSearch, StartedSearch
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest
from seqloom.inference import predictor as predictor_module
from seqloom.inference.batching import (
    batches_by_length,
    halves,
    input_tokens,
    run_in_halves,
)
from seqloom.inference.options import TEXT_ONLY, PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.predictor import Predictor
from seqloom.inference.run import Run, load
from seqloom.models.interface import Memory, State, Step
from seqloom.models.seq2seq import Model
from seqloom.serving.server.batcher import FunctionCall, Job, JobStreamingCallback
from seqloom.serving.server.jobs import SearchInput, SearchJobType
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.glossary import RequiredPhrase
from seqloom.training.loop import train
from support.tiny_runs import tiny_config
from support.toy_decoders import EchoDecoder, random_memory

TEXTS = ["abc", "ba", "dcba", "a", "cc", "bad", "cab"]
OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4 GiB"
)


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_batches_contain_every_input_once_longest_first(lengths: list[int], budget: int) -> None:
    batches = list(batches_by_length(lengths, budget))
    order = [index for batch in batches for index in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[index] for index in order] == sorted(lengths, reverse=True)
    for batch in batches[:-1]:
        assert len(batch) == 1 or lengths[batch[0]] * len(batch) <= budget
    for batch in batches[-1:]:
        assert len(batch) == 1 or lengths[batch[0]] * len(batch) <= 2 * budget


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_no_batch_exceeds_the_budget_with_last_batch_factor_1(
    lengths: list[int], budget: int
) -> None:
    for batch in batches_by_length(lengths, budget, last_batch_factor=1):
        assert len(batch) == 1 or lengths[batch[0]] * len(batch) <= budget


@pytest.mark.parametrize(("device", "sizes"), [("cpu", [7, 7, 7, 4]), ("cuda", [6, 6, 6, 7])])
def test_batches_on_a_gpu_fill_the_sizes_of_captured_searches(
    device: str, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A captured search for 7 inputs would compute 8 rows."""
    monkeypatch.setattr(predictor_module, "batch_token_budget", lambda device: 21)
    predictor = Predictor(cast("Model", None), cast("TokenTask", None), torch.device(device))
    batches = predictor._batches([ModelInput(TextInput((5, 6)), ())] * 25, last_batch_factor=1)
    assert [len(batch) for batch in batches] == sizes


@pytest.mark.parametrize(
    ("texts", "expected_batches"), [(10, 1), (15, 1), (20, 1), (21, 2), (45, 4)]
)
def test_last_batch_takes_up_to_two_budgets(texts: int, expected_batches: int) -> None:
    """Ten texts fill a budget."""
    batches = list(batches_by_length([4] * texts, 40))
    assert len(batches) == expected_batches
    assert all(len(batch) == 10 for batch in batches[:-1])


def test_input_tokens_counts_source_or_prefix_or_a_constant_per_image() -> None:
    """Without the constant, thousands of images would form one batch."""
    image = np.zeros((3, 8, 8), dtype=np.uint8)
    inputs = (
        ModelInput(TextInput((5, 6)), (7,)),
        ModelInput(None, (7,)),
        ModelInput(ImageInput(image), ()),
    )
    assert [input_tokens(model_input) for model_input in inputs] == [3, 2, IMAGE_TOKENS]
    batches = batches_by_length([IMAGE_TOKENS] * 1000, 4096)
    assert max(map(len, batches)) * IMAGE_TOKENS <= 2 * 4096


@given(st.lists(st.integers(), min_size=1, max_size=40), st.integers(1, 9))
def test_run_in_halves_processes_every_item_in_order(numbers: list[int], capacity: int) -> None:
    def double(batch: list[int]) -> list[int]:
        if len(batch) > capacity:
            raise torch.OutOfMemoryError(OUT_OF_MEMORY)
        return [2 * number for number in batch]

    parts = run_in_halves(double, numbers, halves)
    assert [number for part in parts for number in part] == [2 * number for number in numbers]
    assert all(len(part) <= capacity for part in parts)


def test_programs_of_earlier_searches_are_dropped_if_memory_runs_out() -> None:
    """They hold memory that `torch.cuda.empty_cache` does not free."""
    decoder, memory = EchoDecoder(3, 5), random_memory(3, [2, 3])
    CapturedSearch(Greedy())(decoder, memory, SearchRequest([2, 2]))
    assert decoder in captured._PROGRAMS

    def with_free_memory(batch: list[int]) -> list[int]:
        if decoder in captured._PROGRAMS:
            raise torch.OutOfMemoryError(OUT_OF_MEMORY)
        return batch

    assert run_in_halves(with_free_memory, [1, 2], halves) == [[1], [2]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("batching") / "run"
    train(tiny_config(), folder)
    return load(folder)


def limit_capacity(sources: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let `Predictor.encode` run out of memory above this batch size.

    Returns the list of the batch sizes of all calls.
    """
    encode, sizes = Predictor.encode, []

    def limited_encode(self: Predictor, batch: Sequence[ModelInput]) -> Memory:
        sizes.append(len(batch))
        if len(batch) > sources:
            raise torch.OutOfMemoryError(OUT_OF_MEMORY)
        return encode(self, batch)

    monkeypatch.setattr(Predictor, "encode", limited_encode)
    return sizes


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoding",
    [GreedyConfig(), BeamConfig(width=3), SampleConfig(seed=5)],
    ids=["greedy", "beam", "sample"],
)
def test_halving_does_not_change_translations(
    run: Run, decoding: DecodingConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run.translate(TEXTS, decoding=decoding)
    sizes = limit_capacity(2, monkeypatch)
    for first, second in zip(expected, run.translate(TEXTS, decoding=decoding), strict=True):
        assert (first.text, first.pieces) == (second.text, second.pieces)
        assert first.score == pytest.approx(second.score, abs=1e-5)
    assert max(sizes) == len(TEXTS), "no batch exceeded the capacity"


class TokenCollector:
    """A streaming callback that stores the tokens of each input."""

    def __init__(self) -> None:
        self.tokens: dict[int, list[int]] = {}

    def is_cancelled(self, index: int) -> bool:
        return False

    def is_streaming(self, index: int) -> bool:
        return True

    def on_token(self, index: int, position: int, token: int, log_probability: float) -> None:
        self.tokens.setdefault(index, []).append(token)


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [2, len(TEXTS)])
def test_streaming_callback_receives_tokens_under_the_input_index(
    run: Run, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs are sorted by length, and batches are halved when they do not fit."""
    predictor = Predictor(run.model, run.task, torch.device("cpu"))
    inputs = [run.task.prepare(text) for text in TEXTS]
    limit_capacity(capacity, monkeypatch)
    callback = TokenCollector()
    predictions = predictor.predict_inputs(
        inputs, GreedyConfig(), TEXT_ONLY, range(len(TEXTS)), callback=callback
    )
    for index, (best, *_) in enumerate(predictions):
        streamed = callback.tokens.get(index, [])
        assert streamed == list(best.tokens)[: len(streamed)]
    assert any(callback.tokens.values())


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [2, len(TEXTS)])
@pytest.mark.parametrize("decoding", [BeamConfig(width=3), GreedyConfig(), SampleConfig(samples=2)])
def test_early_predictions_equal_the_returned_ones(
    run: Run, decoding: SearchConfig, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = Predictor(run.model, run.task, torch.device("cpu"))
    inputs = [run.task.prepare(text) for text in TEXTS]
    settings = (decoding, PredictionOptions(n_best=2, attention=True), range(len(TEXTS)))
    expected = predictor.predict_inputs(inputs, *settings)
    limit_capacity(capacity, monkeypatch)
    early: dict[int, list[Prediction]] = {}
    predictor.predict_inputs(
        inputs, *settings, callback=TokenCollector(), on_prediction=early.__setitem__
    )
    assert sorted(early) == list(range(len(TEXTS)))
    for index, predictions in enumerate(expected):
        for prediction, other in zip(early[index], predictions, strict=True):
            assert (prediction.text, prediction.tokens) == (other.text, other.tokens)
            assert prediction.score == pytest.approx(other.score, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("decoding", [GreedyConfig(), BeamConfig(width=3)])
def test_on_a_gpu_outputs_are_read_while_the_next_batch_is_searched(
    run: Run, decoding: DecodingConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU stands for the GPU: it runs the searches that a GPU would run."""
    predictor = Predictor(run.model, run.task, torch.device("cpu"))
    inputs = [run.task.prepare(text) for text in TEXTS]
    expected = predictor.predict_inputs(inputs, decoding, TEXT_ONLY, range(len(TEXTS)))
    events: list[str] = []
    start, finish = CapturedSearch.start, StartedSearch.finish

    def logged_start(*arguments: Any) -> StartedSearch:
        events.append("start")
        return start(*arguments)

    def logged_finish(started: StartedSearch) -> None:
        events.append("finish")
        finish(started)

    monkeypatch.setattr(CapturedSearch, "start", logged_start)
    monkeypatch.setattr(StartedSearch, "finish", logged_finish)
    monkeypatch.setattr(predictor_module, "ASYNCHRONOUS_DEVICES", {"cpu"})
    monkeypatch.setattr(
        predictor_module, "select_fastest", lambda search, *_, **__: CapturedSearch(search)
    )
    monkeypatch.setattr(predictor_module, "batch_token_budget", lambda device: 10)
    found: dict[int, list[Hypothesis]] = {}
    for batch in predictor.search(inputs, decoding, TEXT_ONLY, range(len(TEXTS))):
        found.update(batch)
        events.append(f"read {len(found)}")
    tokens = [[each.tokens for each in found[index]] for index in range(len(TEXTS))]
    assert tokens == [
        [each.tokens[: len(each.tokens) - each.finished] for each in outputs]
        for outputs in expected
    ]
    reads = [event for event in events if event.startswith("read")]
    assert len(reads) >= 2
    assert reads[-1] == f"read {len(TEXTS)}"
    order = ["start", "finish"]
    for event in reads[:-1]:
        order += ["start", event, "finish"]
    assert events == [*order, reads[-1]]


@pytest.mark.slow
@pytest.mark.parametrize("decoding", [BeamConfig(width=3), GreedyConfig()])
def test_captured_searches_report_early_predictions(
    run: Run, decoding: SearchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        predictor_module, "select_fastest", lambda search, *_, **__: CapturedSearch(search)
    )
    predictor = Predictor(run.model, run.task, torch.device("cpu"))
    inputs = [run.task.prepare(text) for text in TEXTS]
    early: dict[int, list[Prediction]] = {}
    predictions = predictor.predict_inputs(
        inputs, decoding, TEXT_ONLY, range(len(TEXTS)), on_prediction=early.__setitem__
    )
    assert [early[index] for index in range(len(TEXTS))] == predictions


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
def test_a_job_gets_its_result_before_the_longest_output_of_its_batch_unless_it_is_streamed(
    run: Run, streamed: bool
) -> None:
    job_type = SearchJobType(run, GreedyConfig(), TEXT_ONLY, streamed=streamed, torch_only=True)
    on_token = (lambda token, log_probability: None) if streamed else None
    with asyncio.Runner() as runner:
        jobs = [
            Job(
                job_type,
                1,
                SearchInput(run.task.prepare(text)),
                runner.get_loop().create_future(),
                on_token,
            )
            for text in TEXTS
        ]
        results = job_type.process(jobs)
    assert [job.early for job in jobs] == ([None] * len(TEXTS) if streamed else results)


@pytest.mark.slow
def test_inputs_with_required_phrases_have_no_early_predictions(run: Run) -> None:
    predictor = Predictor(run.model, run.task, torch.device("cpu"))
    first, *others = [run.task.prepare(text) for text in TEXTS]
    required = replace(first, required_phrases=(RequiredPhrase("a", 0, 0),))
    early: dict[int, list[Prediction]] = {}
    predictor.predict_inputs(
        [required, *others],
        BeamConfig(width=3),
        TEXT_ONLY,
        range(len(TEXTS)),
        on_prediction=early.__setitem__,
    )
    assert set(early) == set(range(1, len(TEXTS)))


@pytest.mark.slow
def test_no_token_is_streamed_twice_when_a_search_is_repeated(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory runs out during the search, after the first tokens were streamed."""
    predictor = Predictor(run.model, run.task, torch.device("cpu"))
    step = type(run.model.decoder).step
    steps = failures = 0

    def failing_step(self: Any, tokens: Tensor, state: State) -> Step:
        nonlocal steps, failures
        steps += 1
        if len(tokens) > 4 and steps > 1:
            failures += 1
            raise torch.OutOfMemoryError(OUT_OF_MEMORY)
        return step(self, tokens, state)

    monkeypatch.setattr(type(run.model.decoder), "step", failing_step)
    streamed: list[list[int]] = [[] for _ in TEXTS]

    def append(tokens: list[int], token: int, log_probability: float) -> None:
        tokens.append(token)

    with asyncio.Runner() as runner:
        new_future = runner.get_loop().create_future
        jobs = [
            Job(FunctionCall(list), 1, None, new_future(), partial(append, tokens))
            for tokens in streamed
        ]
        inputs = [run.task.prepare(text) for text in TEXTS]
        predictions = predictor.predict_inputs(
            inputs,
            GreedyConfig(),
            TEXT_ONLY,
            range(len(TEXTS)),
            callback=JobStreamingCallback(jobs),
        )
    assert failures == 1
    for tokens, (best, *_) in zip(streamed, predictions, strict=True):
        assert tokens == list(best.tokens)[: len(tokens)]
        assert len(tokens) >= len(best.tokens) - 1


@pytest.mark.slow
def test_halving_does_not_change_scores(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run.score(TEXTS, TEXTS)
    sizes = limit_capacity(3, monkeypatch)
    for first, second in zip(expected, run.score(TEXTS, TEXTS), strict=True):
        assert first.score == pytest.approx(second.score, abs=1e-5)
    assert max(sizes) == len(TEXTS), "no batch exceeded the capacity"


@pytest.mark.slow
def test_error_if_a_single_line_does_not_fit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_capacity(0, monkeypatch)
    with pytest.raises(DataError) as caught:
        run.translate(TEXTS)
    message = str(caught.value)
    assert "a single line does not fit into GPU memory: CUDA out of memory." in message
    assert "narrower beam" in message


@pytest.mark.slow
def test_more_hypotheses_per_input_mean_fewer_inputs_per_batch(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    encode = Predictor.encode

    def counting_encode(self: Predictor, batch: Sequence[ModelInput]) -> Memory:
        sizes.append(sum(len(model_input.source_tokens) + 1 for model_input in batch))
        return encode(self, batch)

    monkeypatch.setattr(Predictor, "encode", counting_encode)
    monkeypatch.setattr("seqloom.inference.batching.CPU_BATCH_TOKENS", 120)
    texts = ["a b c", "b", "c a"] * 36
    searches: list[tuple[DecodingConfig, int]] = [
        (GreedyConfig(max_length=3), 1),
        (BeamConfig(width=4, max_length=3), 4),
        (SampleConfig(samples=3, max_length=3), 3),
    ]
    for decoding, hypotheses in searches:
        sizes.clear()
        run.predictor.predict(texts, decoding)
        assert len(sizes) > hypotheses
        assert max(sizes[:-1]) * hypotheses <= 120
        assert sizes[-1] * hypotheses <= 240
