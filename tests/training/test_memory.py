"""The memory of a step, told in advance."""

import pytest

from seqloom.data.vocabularies import learn_tokenizers
from seqloom.models.build import build_model
from seqloom.tasks.build import learn_task
from seqloom.training.memory_estimate import StepMemory, blank_batch, step_memory
from tiny_runs import SPEAKER, TRANSFORMER, recipe


def needed(changes: tuple[str, ...], rows: int, length: int) -> StepMemory:
    config = recipe(*changes)
    task = learn_task(config)
    model = build_model(config.model, task.signature)
    return step_memory(model, task, blank_batch(task.signature, rows, length, length))


@pytest.mark.parametrize("changes", [(), TRANSFORMER, SPEAKER], ids=["gru", "transformer", "alone"])
def test_twice_the_rows_need_twice_the_activations(changes: tuple[str, ...]) -> None:
    few, many = needed(changes, 64, 8), needed(changes, 128, 8)
    assert few.weights == many.weights
    assert many.activations == pytest.approx(2 * few.activations, rel=0.1)


def test_weights_count_with_their_gradients_and_moments() -> None:
    config = recipe()
    task = learn_task(config)
    model = build_model(config.model, task.signature)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert step_memory(model, task, blank_batch(task.signature, 2, 3, 3)).weights == 4 * 4 * numbers


def test_activations_are_at_least_the_probabilities_of_every_word() -> None:
    config = recipe()
    _, target = learn_tokenizers(config)
    assert needed((), 64, 8).activations > 4 * 64 * 8 * target.size
