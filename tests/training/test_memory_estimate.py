"""The estimated memory of a training step."""

import pytest

from seqloom.data.corpus.vocabularies import train_tokenizers
from seqloom.models.build import build_model
from seqloom.tasks.build import learn_task
from seqloom.training.memory_estimate import StepMemory, blank_batch, step_memory
from support.tiny_runs import LANGUAGE_MODEL, TRANSFORMER, tiny_config


def estimate(changes: tuple[str, ...], rows: int, length: int) -> StepMemory:
    config = tiny_config(*changes)
    task = learn_task(config)
    model = build_model(config.model, task.signature)
    return step_memory(model, task, blank_batch(task.signature, rows, length, length))


@pytest.mark.parametrize(
    "changes", [(), TRANSFORMER, LANGUAGE_MODEL], ids=["gru", "transformer", "alone"]
)
def test_activations_grow_linearly_with_the_number_of_rows(changes: tuple[str, ...]) -> None:
    few, many = estimate(changes, 64, 8), estimate(changes, 128, 8)
    assert few.weights == many.weights
    assert many.activations == pytest.approx(2 * few.activations, rel=0.1)


def test_weights_include_gradients_and_optimiser_moments() -> None:
    config = tiny_config()
    task = learn_task(config)
    model = build_model(config.model, task.signature)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert step_memory(model, task, blank_batch(task.signature, 2, 3, 3)).weights == 4 * 4 * count


def test_activations_include_the_logits() -> None:
    config = tiny_config()
    _, target = train_tokenizers(config)
    assert estimate((), 64, 8).activations > 4 * 64 * 8 * target.size
