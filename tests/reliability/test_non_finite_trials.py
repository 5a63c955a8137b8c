"""NaN and infinite values at random places of training and data: reported, and never saved."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from seqloom.core.errors import DataError, TrainingError
from seqloom.runs.weights import read_tensors
from seqloom.tasks.build import learn_task
from seqloom.training import loop
from seqloom.training.loop import train
from seqloom.training.loss import batch_loss
from seqloom.training.session import Session
from support.tiny_runs import TRANSFORMER, tiny_config
from support.tiny_series import forecast_config, write_series
from support.trials import count_trials, save_results

pytestmark = pytest.mark.slow

TRIALS = count_trials(1, 50)
"""Number of trials per place."""
STEPS = 8
VALUES = ("nan", "inf", "-inf")


def break_training(
    patch: pytest.MonkeyPatch, where: str, bad_step: int, generator: random.Random
) -> None:
    """Put a value into the loss, a gradient or a weight at a step."""
    take_step, value = loop.take_step, float(generator.choice(VALUES))

    def spoil(tensor: Tensor) -> Tensor:
        spoiled = tensor.detach().clone(memory_format=torch.contiguous_format)
        spoiled.view(-1)[generator.randrange(tensor.numel())] = value
        return spoiled

    def broken_loss(session: Session, step: int, batch: Any) -> Tensor:
        loss = batch_loss(session, step, batch)
        if step == bad_step and where == "loss":
            return loss * value
        return loss

    def broken_step(session: Session) -> Any:
        parameters = [each for each in session.model.parameters() if each.requires_grad]
        chosen = generator.choice(parameters)
        is_bad = session.step + 1 == bad_step
        hook = chosen.register_hook(spoil) if is_bad and where == "gradient" else None
        result = take_step(session)
        if hook is not None:
            hook.remove()
        if is_bad and where == "weight":
            chosen.data = spoil(chosen.data)
        return result

    patch.setattr(loop, "batch_loss", broken_loss)
    patch.setattr(loop, "take_step", broken_step)


@pytest.mark.parametrize("where", ["loss", "gradient", "weight"])
def test_a_bad_value_in_training_is_reported_and_never_saved(where: str, tmp_path: Path) -> None:
    for trial in range(TRIALS):
        generator = random.Random(f"{where} {trial}")
        model = TRANSFORMER if generator.random() < 0.5 else ()
        config = tiny_config(
            *model,
            f"training.steps={STEPS}",
            f"training.checkpoint_every={generator.randint(1, STEPS)}",
            f"training.evaluate_every={generator.randint(1, STEPS)}",
        )
        folder, bad_step = tmp_path / str(trial), generator.randint(1, STEPS)
        with pytest.MonkeyPatch.context() as patch:
            break_training(patch, where, bad_step, generator)
            with pytest.raises(TrainingError) as caught:
                train(config, folder)
        # A weight is noticed when it is used or saved: the row of a token may be used much later.
        steps = range(bad_step, STEPS + 1) if where == "weight" else (bad_step,)
        assert any(f"{folder}: step {step}: " in str(caught.value) for step in steps)
        assert "Training examples of this step" in str(caught.value)
        for path in folder.rglob("*.safetensors"):
            assert all(torch.isfinite(tensor).all() for tensor in read_tensors(path).values())
    save_results(f"non-finite.{where}", values=TRIALS, reported=TRIALS, saved=0)


def test_a_bad_value_in_the_data_is_an_error_with_its_line_and_column(tmp_path: Path) -> None:
    write_series(tmp_path)
    path = tmp_path / "tide.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    config = forecast_config(tmp_path)
    for trial in range(TRIALS):
        generator = random.Random(trial)
        line, column = generator.randrange(1, 180), generator.choice((1, 2))
        cells = lines[line].split(",")
        cells[column] = generator.choice((*VALUES, "1e999", "", "NaN", "x"))
        path.write_text("\n".join([*lines[:line], ",".join(cells), *lines[line + 1 :]]) + "\n")
        name = lines[0].split(",")[column]
        with pytest.raises(DataError, match=rf"tide\.csv:{line + 1}: column {name}: .* is not "):
            learn_task(config)
    save_results("non-finite.data", values=TRIALS, reported=TRIALS, saved=0)
