"""Teacher forcing, free running and their mixture, for sequences of vectors."""

from pathlib import Path
from typing import Any

import pytest
import torch

import seqloom
from seqloom.config.schema.training import FreeRunningConfig, ScheduledSamplingConfig
from seqloom.core.errors import ConfigError
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.tasks.build import learn_task
from seqloom.tasks.forecast import Forecast
from seqloom.tasks.losses import Objective
from seqloom.training.schedule import target_share
from support.tiny_series import forecast_config, write_series

TRANSFORMERS = tuple(
    f"model.{side}={{kind='transformer', width=16, layers=2, feedforward=32, "
    "attention={heads=2}, dropout=0.0}"
    for side in ("encoder", "decoder")
)
ATTENTION = (
    "model.decoder={kind='recurrent', width=16, attention={projection='linear'}, context=['input']}",
)
every_decoder = pytest.mark.parametrize(
    "settings", [(), ATTENTION, TRANSFORMERS], ids=["recurrent", "attention", "Transformer"]
)
MIXED = "training.decoder_input={kind='scheduled-sampling', start=1.0, end=0.0, steps=20}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    write_series(folder)
    return folder


def prepare(folder: Path, *settings: str) -> tuple[Forecast, Model, Any]:
    config = forecast_config(folder, *settings)
    task = learn_task(config)
    assert isinstance(task, Forecast)
    torch.manual_seed(1)
    model = build_model(config.model, task.signature)
    corpus = task.corpus(config, "train", lambda count: None)
    return task, model, corpus.gather(torch.arange(40).numpy())


def loss_at(task: Forecast, model: Model, batch: Any, share: float) -> torch.Tensor:
    torch.manual_seed(7)
    return task.loss(model, batch, Objective(target_share=share))


@every_decoder
def test_a_share_of_one_is_teacher_forcing(settings: tuple[str, ...], folder: Path) -> None:
    task, model, batch = prepare(folder, *settings)
    outputs = model(batch).logits()
    expected = ((outputs - batch.targets.values) ** 2).mean(-1).sum()
    assert torch.equal(loss_at(task, model, batch, 1.0), expected)


@every_decoder
def test_a_share_of_zero_is_free_running(settings: tuple[str, ...], folder: Path) -> None:
    task, model, batch = prepare(folder, *settings)
    outputs = task.free_running(model, batch)
    expected = ((outputs - batch.targets.values) ** 2).mean(-1).sum()
    assert torch.equal(loss_at(task, model, batch, 0.0), expected)
    with torch.inference_mode():  # prediction uses a cache that is written in place
        predicted = task.free_running(model.eval(), batch)
    torch.testing.assert_close(predicted, outputs.detach())


@every_decoder
def test_steps_that_all_read_targets_equal_teacher_forcing(
    settings: tuple[str, ...], folder: Path
) -> None:
    """The mixture runs step by step, teacher forcing on all positions at once."""
    task, model, batch = prepare(folder, *settings)
    mixed = task.free_running(model, batch, target_share=2.0)
    torch.testing.assert_close(mixed, model(batch).logits())


@every_decoder
def test_a_mixture_is_between_teacher_forcing_and_free_running(
    settings: tuple[str, ...], folder: Path
) -> None:
    task, model, batch = prepare(folder, *settings)
    torch.manual_seed(3)
    mixed = task.free_running(model, batch, target_share=0.5)
    forced, free = model(batch).logits(), task.free_running(model, batch)
    assert torch.equal(mixed[:, 0], free[:, 0])  # the first input is always the last observed row
    torch.testing.assert_close(mixed[:, 0], forced[:, 0])
    second = mixed[:, 1]
    is_free = (second - free[:, 1]).abs().amax(1) < 1e-6
    is_forced = (second - forced[:, 1]).abs().amax(1) < 1e-6
    assert bool((is_free | is_forced).all())
    assert bool(is_free.any())
    assert bool(is_forced.any())


@every_decoder
def test_gradients_flow_through_predictions(settings: tuple[str, ...], folder: Path) -> None:
    """The loss of the last row alone depends on the encoder through all earlier predictions. The
    gradient equals that of a computation without a cache."""
    task, model, batch = prepare(folder, *settings)
    columns = batch.targets.values.shape[-1]
    parameters = [each for each in model.parameters() if each.requires_grad]

    def gradients(last: torch.Tensor) -> list[torch.Tensor]:
        found = torch.autograd.grad(last.square().sum(), parameters, allow_unused=True)
        return [
            torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)
        ]

    stepped = gradients(task.free_running(model, batch)[:, -1])
    memory = model.encode(batch.source, batch.size)
    inputs = batch.inputs.values[:, :1]
    for position in range(batch.inputs.values.shape[1]):
        outputs = model.decoder(inputs, memory).logits()
        context = batch.inputs.values[:, position + 1 : position + 2, columns:]
        inputs = torch.cat(
            [inputs, torch.cat([outputs[:, -1:][:, : context.shape[1]], context], -1)], 1
        )
    whole = gradients(outputs[:, -1])
    assert any(bool(each.abs().max() > 0) for each in stepped)
    for first, second in zip(stepped, whole, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-5)


def test_rollout_is_short_for_free_running(folder: Path) -> None:
    config = forecast_config(folder, "task.rollout=true")
    assert config.decoder_input == FreeRunningConfig()
    assert config.is_free_running
    mixed = forecast_config(folder, MIXED).decoder_input
    assert isinstance(mixed, ScheduledSamplingConfig)
    assert [target_share(mixed, step) for step in (1, 20, 99)] == [1.0, 0.0, 0.0]
    assert not forecast_config(folder).is_free_running


def test_dev_loss_is_free_running_unless_training_uses_teacher_forcing(folder: Path) -> None:
    for setting, share in (("training.seed=1", 1.0), ("task.rollout=true", 0.0), (MIXED, 0.0)):
        task, model, batch = prepare(folder, setting)
        assert torch.equal(task.loss(model, batch), loss_at(task, model, batch, share))


def test_rollout_and_scheduled_sampling_contradict_each_other(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"task.rollout: selects free running, .*remove one"):
        forecast_config(folder, "task.rollout=true", MIXED)


@pytest.mark.slow
@every_decoder
@pytest.mark.parametrize("decoder_input", [MIXED, "training.decoder_input={kind='free-running'}"])
def test_training_reduces_the_free_running_loss(
    settings: tuple[str, ...], decoder_input: str, folder: Path, tmp_path: Path
) -> None:
    losses: list[float] = []
    seqloom.train(
        forecast_config(
            folder, *settings, decoder_input, "training.steps=40", "training.evaluate_every=10"
        ),
        tmp_path / "run",
        report=lambda event: (
            losses.append(event.data["loss"]) if event.kind == "evaluate" else None
        ),
    )
    assert losses[-1] < losses[0]
