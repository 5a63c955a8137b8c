"""Weight averaging: formulas, checkpoints, and the saved weights."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from seqloom.config.schema.training import LastWeightsConfig, MovingAverageConfig, NoAveragingConfig
from seqloom.inference.run import load
from seqloom.runs.integrity import weights_store
from seqloom.runs.weights import read_tensors, weights_of
from seqloom.training.averaging import Averager, build_averager
from seqloom.training.loop import train
from support.tiny_runs import NO_DROPOUT, latest_checkpoint, read_events, tiny_config

CONFIGS = [NoAveragingConfig(), LastWeightsConfig(count=3), MovingAverageConfig(decay=0.6)]


def random_steps(model: nn.Module, averager: Averager, steps: range) -> list[Tensor]:
    """Take random steps, evaluating every second one. Returns the weight after each step."""
    seen = []
    for step in steps:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=torch.manual_seed(step)))
        averager.after_step(model)
        if step % 2 == 0:
            averager.before_evaluation(model, step)
        seen.append(next(model.parameters()).detach().clone())
    return seen


def test_without_averaging_the_last_weight_is_used() -> None:
    model, averager = nn.Linear(3, 2), build_averager(NoAveragingConfig())
    seen = random_steps(model, averager, range(1, 5))
    assert torch.equal(averager.average(model)["weight"], seen[-1])


def test_last_weights_average_is_the_mean_of_the_last_evaluations() -> None:
    model, averager = nn.Linear(3, 2), build_averager(LastWeightsConfig(count=3))
    assert torch.equal(averager.average(model)["weight"], model.weight)
    seen = random_steps(model, averager, range(1, 11))
    expected = torch.stack([seen[5], seen[7], seen[9]]).mean(0)
    assert torch.allclose(averager.average(model)["weight"], expected)
    averager.before_evaluation(model, 10)  # repeated after an interruption
    assert torch.allclose(averager.average(model)["weight"], expected)


def test_the_moving_average_follows_its_formula() -> None:
    model, averager = nn.Linear(3, 2), build_averager(MovingAverageConfig(decay=0.6))
    seen = random_steps(model, averager, range(1, 31))
    mean = seen[0]
    for step, weight in enumerate(seen[1:], start=2):
        decay = min(0.6, step / (step + 10))
        mean = decay * mean + (1 - decay) * weight
    assert torch.allclose(averager.average(model)["weight"], mean, atol=1e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_a_restored_average_continues_exactly(
    config: NoAveragingConfig | LastWeightsConfig | MovingAverageConfig,
) -> None:
    model, averager = nn.Linear(3, 2), build_averager(config)
    random_steps(model, averager, range(1, 8))
    restored = build_averager(config)
    restored.restore({name: tensor.clone() for name, tensor in averager.tensors().items()})
    weights = {name: weight.clone() for name, weight in weights_of(model).items()}
    random_steps(model, averager, range(8, 14))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    random_steps(model, restored, range(8, 14))
    for name, average in averager.average(model).items():
        assert torch.equal(average, restored.average(model)[name])


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_the_context_applies_the_average_and_restores_the_weights(
    config: NoAveragingConfig | LastWeightsConfig | MovingAverageConfig,
) -> None:
    model, averager = nn.Linear(3, 2), build_averager(config)
    seen = random_steps(model, averager, range(1, 8))
    average = averager.average(model)["weight"].clone()

    def fail() -> None:
        with averager.applied(model):
            assert torch.equal(model.weight, average)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(model.weight, seen[-1])


def test_without_averaging_nothing_is_copied() -> None:
    model, averager = nn.Linear(3, 2), build_averager(NoAveragingConfig())
    pointers = [parameter.data_ptr() for parameter in model.parameters()]
    versions = [parameter._version for parameter in model.parameters()]
    with averager.applied(model):
        assert [parameter.data_ptr() for parameter in model.parameters()] == pointers
    assert [parameter._version for parameter in model.parameters()] == versions


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["last", "ema"])
def test_the_saved_weights_are_the_averaged_ones_that_were_evaluated(
    kind: str, tmp_path: Path
) -> None:
    config = tiny_config(*NO_DROPOUT, f"training.averaging.kind={kind}", "training.steps=8")
    summary = train(config, tmp_path / "run")
    folder = weights_store(tmp_path / "run").current()
    assert folder is not None
    best = read_tensors(folder / "model.safetensors")
    plain = read_tensors(latest_checkpoint(tmp_path / "run") / "model.safetensors")
    assert summary.best_step == 8
    assert any(not torch.equal(best[name], plain[name]) for name in plain)
    scores = {score.key: score.value for score in load(tmp_path / "run").evaluate("dev").scores}
    line = [line for line in read_events(tmp_path / "run") if line["event"] == "evaluate"][-1]
    assert line["best"]
    assert scores["perplexity"] == pytest.approx(line["perplexity"], rel=1e-5)
