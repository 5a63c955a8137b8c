"""One training step: the gradient of the mean loss per target."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import TrainingError
from seqloom.core.signature import Signature, Tokens
from seqloom.data.batching.collate import collate
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.runs.weights import read_tensors
from seqloom.text.vocabulary import END, PAD
from seqloom.training.distributed import World
from seqloom.training.loop import train
from seqloom.training.step import SeededBatch, StepResult, check_step_is_finite, train_step
from support.ranks import train_on_ranks
from support.tiny_runs import (
    NO_DROPOUT,
    TRANSFORMER,
    checkpoint_digests,
    latest_checkpoint,
    read_events,
    temporary_files,
    tiny_config,
)
from support.token_loss import token_loss

ALONE = World(0, 1, torch.device("cpu"))
SIZE = 12

rows = st.lists(st.integers(4, SIZE - 1), min_size=0, max_size=5)
pairs = st.lists(st.tuples(rows, rows), min_size=2, max_size=6)


def small_model(*changes: str) -> Model:
    torch.manual_seed(0)
    model = build_model(
        tiny_config(*changes).model, Signature(Tokens(SIZE), Tokens(SIZE), shared=False)
    )
    return model.double()


MODELS = {"recurrent": small_model(*NO_DROPOUT), "transformer": small_model(*TRANSFORMER)}


@pytest.fixture(params=MODELS, scope="module")
def model(request: pytest.FixtureRequest) -> Model:
    return MODELS[request.param]


def batch_of(examples: list[tuple[list[int], list[int]]]) -> Batch:
    sources, targets = zip(*examples, strict=True)
    return collate(
        [np.array(s, np.int32) for s in sources], [np.array(t, np.int32) for t in targets]
    )


def gradient(model: Model, batches: list[Batch], smoothing: float = 0.1) -> tuple[Tensor, Tensor]:
    """(loss, gradient of all weights as one vector)"""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def compute_loss(batch: Batch) -> Tensor:
        return token_loss(model, batch, smoothing)

    seeded = [SeededBatch(batch) for batch in batches]
    loss = train_step(model, optimizer, seeded, compute_loss, None, ALONE).loss
    return loss, torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@settings(max_examples=15, deadline=None)
@given(examples=pairs, cut=st.integers(1, 5))
def test_splitting_a_batch_does_not_change_the_gradient(
    model: Model, examples: list[tuple[list[int], list[int]]], cut: int
) -> None:
    cut = min(cut, len(examples) - 1)
    single = gradient(model, [batch_of(examples)])
    parts = gradient(model, [batch_of(examples[:cut]), batch_of(examples[cut:])])
    for one, other in zip(single, parts, strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-7)


def pad_further(padded: Padded, more: int, fill: int) -> Padded:
    extra = torch.full((padded.values.shape[0], more), fill)
    return replace(padded, values=torch.cat([padded.values, extra], dim=1))


@settings(max_examples=15, deadline=None)
@given(examples=pairs, more=st.integers(1, 4), fill=st.sampled_from([PAD, END, 7]))
def test_padding_does_not_change_loss_or_gradient(
    model: Model, examples: list[tuple[list[int], list[int]]], more: int, fill: int
) -> None:
    batch = batch_of(examples)
    assert isinstance(batch.source, Padded)
    padded = Batch(
        pad_further(batch.source, more, fill),
        pad_further(batch.inputs, more, fill),
        pad_further(batch.targets, more, fill),
    )
    assert padded.num_targets == sum(len(target) + 1 for _, target in examples)
    for one, other in zip(gradient(model, [batch]), gradient(model, [padded]), strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-7)


@given(examples=pairs)
def test_end_is_never_a_decoder_input(examples: list[tuple[list[int], list[int]]]) -> None:
    batch = batch_of(examples)
    assert not (batch.inputs.values[batch.inputs.mask] == END).any()
    assert torch.equal(batch.inputs.lengths, batch.targets.lengths)


def test_clipping_limits_the_norm_of_all_gradients_together(model: Model) -> None:
    batches = [batch_of([([4, 5], [6, 7]), ([5], [4])])]
    loss = partial(token_loss, model, smoothing=0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    result = train_step(
        model, optimizer, [SeededBatch(batch) for batch in batches], loss, 0.01, ALONE
    )
    gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    assert float(torch.cat(gradients).norm()) == pytest.approx(0.01, rel=1e-3)
    assert float(result.norm) > 0.01  # before clipping


def test_a_non_finite_loss_is_an_error_before_the_weights_change(model: Model) -> None:
    before = [parameter.clone() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    def infinite_loss(batch: Batch) -> Tensor:
        return token_loss(model, batch, 0.0) * float("inf")

    batch = SeededBatch(batch_of([([4], [6])]))
    with pytest.raises(TrainingError, match="the loss is inf and the gradient norm nan"):
        train_step(model, optimizer, [batch], infinite_loss, None, ALONE)
    for old, new in zip(before, model.parameters(), strict=True):
        assert torch.equal(old, new)


def test_the_first_non_finite_gradient_is_named_if_there_are_gradients(model: Model) -> None:
    result = StepResult(torch.tensor(float("nan")), 1, torch.tensor(1.0))
    model.zero_grad()
    with pytest.raises(TrainingError, match=r"gradient norm 1\.0\. Lower"):
        check_step_is_finite(model, result)  # as after the replay of a CUDA graph
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    with pytest.raises(TrainingError, match="first non-finite gradient: none, only the loss"):
        check_step_is_finite(model, result)
    name, parameter = list(model.named_parameters())[-1]
    parameter.grad = torch.full_like(parameter, float("nan"))
    with pytest.raises(TrainingError, match=f"first non-finite gradient: {name}"):
        check_step_is_finite(model, result)


def test_the_loss_is_the_mean_over_targets_not_over_sentences(model: Model) -> None:
    short, long = [([5], [5])], [([5, 6, 7, 8], [8, 7, 6, 5])]
    both, _ = gradient(model, [batch_of(short), batch_of(long)])
    apart = [gradient(model, [batch_of(one)])[0] for one in (short, long)]
    assert float(both) == pytest.approx(float(2 * apart[0] + 5 * apart[1]) / 7, rel=1e-6)


@pytest.mark.slow
def test_two_ranks_compute_what_one_rank_computes(tmp_path: Path) -> None:
    config = tiny_config(*NO_DROPOUT, "training.steps=20", "training.evaluate_every=10")
    one_rank = tiny_config(
        *NO_DROPOUT, "training.steps=20", "training.evaluate_every=10", "training.accumulate=2"
    )
    train(one_rank, tmp_path / "one")
    train_on_ranks(2, config, tmp_path / "two")
    single, parallel = (
        read_tensors(latest_checkpoint(tmp_path / n) / "model.safetensors") for n in ("one", "two")
    )
    assert max(float((single[name] - parallel[name]).abs().max()) for name in single) <= 1e-5
    losses = [
        [line["loss"] for line in read_events(tmp_path / name) if "loss" in line]
        for name in ("one", "two")
    ]
    assert len(losses[0]) == 3  # one step event and two evaluations
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    assert read_events(tmp_path / "two")[-1]["best"] == min(losses[1][1:])
    assert temporary_files(tmp_path / "two") == []


@pytest.mark.slow
def test_two_ranks_resumed_by_two_ranks_end_bit_equal(tmp_path: Path) -> None:
    changes = ("training.checkpoint_every=2", "training.evaluate_every=2")
    train_on_ranks(2, tiny_config("training.steps=8", *changes), tmp_path / "straight")
    train_on_ranks(2, tiny_config("training.steps=4", *changes), tmp_path / "resumed")
    train_on_ranks(2, tiny_config("training.steps=8", *changes), tmp_path / "resumed", resume=True)
    assert checkpoint_digests(tmp_path / "resumed") == checkpoint_digests(tmp_path / "straight")
    assert temporary_files(tmp_path / "resumed") == []
