"""What the decoder is fed: the truth, its own words, or a mixture."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.training import (
    ConstantConfig,
    CosineConfig,
    FreeRunningConfig,
    InverseSquareRootConfig,
    ScheduleConfig,
    ScheduledSamplingConfig,
    TeacherForcingConfig,
)
from seqloom.core.sequences import Batch, Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.data.collate import collate
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.tasks.likelihood import token_loss
from seqloom.text.vocabulary import END, START
from seqloom.training.schedule import learning_rate_factor, target_share
from seqloom.training.scheduled_sampling import mix_decoder_inputs
from tiny_runs import STILL, TRANSFORMER, recipe

SIZE = 9


@pytest.fixture(params=["recurrent", "transformer"])
def model(request: pytest.FixtureRequest) -> Model:
    torch.manual_seed(3)
    changes = STILL if request.param == "recurrent" else TRANSFORMER
    model = build_model(recipe(*changes).model, Signature(Tokens(SIZE), Tokens(SIZE), shared=False))
    with torch.no_grad():  # words that depend on what came before, END among them
        for parameter in model.parameters():
            parameter.mul_(4)
    return model


@pytest.fixture
def batch() -> Batch:
    generator = np.random.default_rng(0)
    sources = [generator.integers(4, SIZE, n).astype(np.int32) for n in (3, 1, 6, 4, 5, 2)]
    targets = [generator.integers(4, SIZE, n).astype(np.int32) for n in (6, 2, 5, 0, 6, 3)]
    return collate(sources, targets)


def own_words(model: Model, batch: Batch) -> torch.Tensor:
    """(B, T) START and the most probable words, each sentence stepped through by itself."""
    rows = []
    for row in range(batch.size):
        assert isinstance(batch.source, Padded)
        length = int(batch.source.lengths[row])
        source = replace(
            batch.source,
            values=batch.source.values[row : row + 1, :length],
            lengths=batch.source.lengths[row : row + 1],
        )
        state = model.decoder.start(model.encode(source, 1), batch.inputs.values.shape[1])
        words = [torch.tensor([START])]
        for _ in range(batch.inputs.values.shape[1] - 1):
            step = model.decoder.step(words[-1], state)
            state = step.state
            words.append(step.logits.argmax(-1))
        rows.append(torch.cat(words))
    return torch.stack(rows)


def test_a_share_of_one_changes_nothing(model: Model, batch: Batch) -> None:
    assert mix_decoder_inputs(model, batch, 1.0) is batch


@torch.no_grad()
def test_a_share_of_zero_feeds_the_models_own_words(model: Model, batch: Batch) -> None:
    fed = mix_decoder_inputs(model, batch, 0.0)
    expected = own_words(model.eval(), batch)
    assert torch.equal(fed.inputs.values, expected)
    assert not torch.equal(fed.inputs.values, batch.inputs.values)
    assert torch.equal(fed.inputs.lengths, batch.inputs.lengths)
    assert fed.targets is batch.targets


@torch.no_grad()
def test_the_models_own_words_are_found_without_dropout(batch: Batch) -> None:
    signature = Signature(Tokens(SIZE), Tokens(SIZE), shared=False)
    changes = ("model.encoder.dropout=0.9", "model.decoder.dropout=0.9")
    model = build_model(recipe(*changes).model, signature).train()
    fed = mix_decoder_inputs(model, batch, 0.0)
    assert torch.equal(fed.inputs.values, own_words(model.eval(), batch))


def test_an_early_end_is_fed_on_and_its_loss_is_a_number(model: Model, batch: Batch) -> None:
    ended = batch.inputs.values.clone()
    ended[:, 1] = END
    fed = replace(batch, inputs=replace(batch.inputs, values=ended))
    loss = token_loss(model, fed, 0.0)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


def test_a_mixture_is_of_truth_and_own_words_and_begins_with_start(
    model: Model, batch: Batch
) -> None:
    torch.manual_seed(0)
    shares = []
    for share in (0.2, 0.8):
        fed = torch.cat([mix_decoder_inputs(model, batch, share).inputs.values for _ in range(20)])
        truth = batch.inputs.values.repeat(20, 1)
        assert (fed[:, 0] == START).all()
        shares.append(float((fed == truth)[:, 1:].float().mean()))
    assert shares[0] < shares[1] < 1
    assert shares[1] > 0.75


def test_feeding_leaves_the_model_as_it_was(model: Model, batch: Batch) -> None:
    for training in (True, False):
        model.train(training)
        mix_decoder_inputs(model, batch, 0.0)
        assert model.training == training
        assert all(part.training == training for part in model.modules())
        assert all(parameter.grad is None for parameter in model.parameters())


def test_the_truth_is_always_or_never_shown_without_a_schedule() -> None:
    assert {target_share(TeacherForcingConfig(), step) for step in range(1, 99)} == {1.0}
    assert {target_share(FreeRunningConfig(), step) for step in range(1, 99)} == {0.0}


@given(
    shape=st.sampled_from(["linear", "exponential", "inverse-sigmoid"]),
    start=st.floats(0, 1),
    end=st.floats(0, 1),
    steps=st.integers(2, 50),
)
def test_a_schedule_goes_from_start_to_end_without_turning_back(
    shape: str, start: float, end: float, steps: int
) -> None:
    config = ScheduledSamplingConfig.model_validate(
        {"shape": shape, "start": start, "end": end, "steps": steps}
    )
    shares = [target_share(config, step) for step in range(1, steps + 10)]
    assert shares[0] == pytest.approx(start)
    assert shares[steps - 1 :] == pytest.approx([end] * 10)
    assert all(0 <= share <= 1 for share in shares)
    changes = [(after - before) * (end - start) for before, after in pairwise(shares)]
    assert min(changes) >= -1e-12


SCHEDULES = [
    ConstantConfig(warmup=0),
    ConstantConfig(warmup=7),
    InverseSquareRootConfig(warmup=7),
    InverseSquareRootConfig(warmup=1),
    CosineConfig(warmup=7, floor=0.1),
    CosineConfig(warmup=0),
]


@pytest.mark.parametrize("config", SCHEDULES, ids=lambda config: f"{config.kind}-{config.warmup}")
def test_a_rate_warms_up_evenly_and_never_leaps_or_rises_again(config: ScheduleConfig) -> None:
    steps = 60
    rates = [learning_rate_factor(config, step, steps) for step in range(1, steps + 1)]
    warm = config.warmup or 0
    assert rates[:warm] == pytest.approx([step / warm for step in range(1, warm + 1)])
    assert max(rates) == pytest.approx(1.0, abs=1e-2)
    after = rates[max(warm - 1, 0) :]
    assert after == sorted(after, reverse=True)
    if not isinstance(config, InverseSquareRootConfig) or warm > 1:
        assert max(abs(a - b) for a, b in pairwise(after)) < 0.1


def test_a_warm_up_that_is_left_out_is_a_tenth_of_the_steps_and_never_too_long() -> None:
    schedule = InverseSquareRootConfig()
    for steps, warm in ((5, 1), (100, 10), (4_000, 400), (1_000_000, 4_000)):
        rates = {
            step: learning_rate_factor(schedule, step, steps) for step in (warm, warm + 1, steps)
        }
        assert rates[warm] == 1.0
        assert rates[warm + 1] < 1.0
        assert learning_rate_factor(schedule, 1, steps) == pytest.approx(1 / warm)


def test_rates_end_where_they_should() -> None:
    assert learning_rate_factor(ConstantConfig(warmup=5), 1000, 1000) == 1.0
    assert learning_rate_factor(InverseSquareRootConfig(warmup=10), 1000, 1000) == pytest.approx(
        0.1
    )
    assert learning_rate_factor(CosineConfig(warmup=10, floor=0.2), 1000, 1000) == pytest.approx(
        0.2
    )
    assert learning_rate_factor(CosineConfig(warmup=10, floor=0.2), 2000, 1000) == pytest.approx(
        0.2
    )
    assert learning_rate_factor(CosineConfig(warmup=0), 500, 1000) == pytest.approx(0.5)


def test_a_run_ahead_that_fails_leaves_the_model_learning(
    model: Model, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that ran out of memory is taken again in parts, with dropout as ever."""
    model.train()

    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(model.decoder, "step", fail)
    with pytest.raises(torch.OutOfMemoryError):
        mix_decoder_inputs(model, batch, 0.5)
    assert model.training
