"""Averages of weights: what they are, and that they come back."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from seqloom.config.training import LastWeightsConfig, MovingAverageConfig, NoAveragingConfig
from seqloom.runs.run import load
from seqloom.runs.soundness import weights_shelf
from seqloom.runs.weights import read_tensors, weights_of
from seqloom.training.averaging import Averager, build_averager
from seqloom.training.loop import train
from tiny_runs import STILL, journal, latest, recipe

CONFIGS = [NoAveragingConfig(), LastWeightsConfig(count=3), MovingAverageConfig(decay=0.6)]


def walk(model: nn.Module, averager: Averager, steps: range) -> list[Tensor]:
    """Random steps, every second one evaluated; returns the weight after each."""
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


def test_no_average_is_the_last_weight() -> None:
    model, averager = nn.Linear(3, 2), build_averager(NoAveragingConfig())
    seen = walk(model, averager, range(1, 5))
    assert torch.equal(averager.average(model)["weight"], seen[-1])


def test_the_average_of_the_last_is_their_mean() -> None:
    model, averager = nn.Linear(3, 2), build_averager(LastWeightsConfig(count=3))
    assert torch.equal(averager.average(model)["weight"], model.weight)
    seen = walk(model, averager, range(1, 11))
    expected = torch.stack([seen[5], seen[7], seen[9]]).mean(0)
    assert torch.allclose(averager.average(model)["weight"], expected)
    averager.before_evaluation(model, 10)  # done again after an interruption
    assert torch.allclose(averager.average(model)["weight"], expected)


def test_a_moving_average_moves_by_its_formula() -> None:
    model, averager = nn.Linear(3, 2), build_averager(MovingAverageConfig(decay=0.6))
    seen = walk(model, averager, range(1, 31))
    mean = seen[0]
    for step, weight in enumerate(seen[1:], start=2):
        decay = min(0.6, step / (step + 10))
        mean = decay * mean + (1 - decay) * weight
    assert torch.allclose(averager.average(model)["weight"], mean, atol=1e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_an_average_restored_goes_on_exactly(
    config: NoAveragingConfig | LastWeightsConfig | MovingAverageConfig,
) -> None:
    model, averager = nn.Linear(3, 2), build_averager(config)
    walk(model, averager, range(1, 8))
    again = build_averager(config)
    again.restore({name: tensor.clone() for name, tensor in averager.tensors().items()})
    own = {name: weight.clone() for name, weight in weights_of(model).items()}
    walk(model, averager, range(8, 14))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(own[name])
    walk(model, again, range(8, 14))
    for name, average in averager.average(model).items():
        assert torch.equal(average, again.average(model)[name])


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_inside_the_model_is_its_average_and_outside_it_is_itself(
    config: NoAveragingConfig | LastWeightsConfig | MovingAverageConfig,
) -> None:
    model, averager = nn.Linear(3, 2), build_averager(config)
    seen = walk(model, averager, range(1, 8))
    average = averager.average(model)["weight"].clone()

    def fail() -> None:
        with averager.applied(model):
            assert torch.equal(model.weight, average)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(model.weight, seen[-1])


def test_where_nothing_is_averaged_nothing_is_copied() -> None:
    model, averager = nn.Linear(3, 2), build_averager(NoAveragingConfig())
    places = [parameter.data_ptr() for parameter in model.parameters()]
    versions = [parameter._version for parameter in model.parameters()]
    with averager.applied(model):
        assert [parameter.data_ptr() for parameter in model.parameters()] == places
    assert [parameter._version for parameter in model.parameters()] == versions


@pytest.mark.parametrize("kind", ["last", "moving"])
def test_the_best_weights_are_the_averaged_ones_that_were_evaluated(
    kind: str, tmp_path: Path
) -> None:
    config = recipe(*STILL, f"training.averaging.kind={kind}", "training.steps=8")
    summary = train(config, tmp_path / "run")
    place = weights_shelf(tmp_path / "run").current()
    assert place is not None
    best = read_tensors(place / "model.safetensors")
    plain = read_tensors(latest(tmp_path / "run") / "model.safetensors")
    assert summary.best_step == 8
    assert any(not torch.equal(best[name], plain[name]) for name in plain)
    scores = {score.key: score.value for score in load(tmp_path / "run").evaluate("dev").scores}
    line = [line for line in journal(tmp_path / "run") if line["event"] == "evaluate"][-1]
    assert line["best"]
    assert scores["perplexity"] == pytest.approx(line["perplexity"], rel=1e-5)
