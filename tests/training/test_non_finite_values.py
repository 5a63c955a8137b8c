"""Infinite and NaN values stop training and are never saved."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from seqloom.core.errors import TrainingError
from seqloom.runs.weights import read_tensors
from seqloom.training import evaluation, loop
from seqloom.training.loop import train
from seqloom.training.loss import batch_loss
from seqloom.training.session import Session
from support.tiny_runs import read_events, tiny_config

pytestmark = pytest.mark.slow


def _inject(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a value infinite or NaN at step 5."""
    take_step = loop.take_step

    def broken_loss(session: Session, step: int, batch: Any) -> Tensor:
        loss = batch_loss(session, step, batch)
        if step == 5 and where == "loss":
            return loss * float("inf")
        if step == 5 and where == "gradient":
            loss.register_hook(lambda gradient: gradient * float("nan"))
        return loss

    def broken_step(session: Session) -> Any:
        result = take_step(session)
        if session.step == 5 and where == "weight":
            with torch.no_grad():
                next(session.model.parameters())[0, 0] = float("nan")
        return result

    monkeypatch.setattr(loop, "batch_loss", broken_loss)
    monkeypatch.setattr(loop, "take_step", broken_step)


CASES = [
    pytest.param(where, due, averaging, marks=pytest.mark.long if (i + j + k) % 2 else ())
    for i, where in enumerate(("loss", "gradient", "weight"))
    for j, due in enumerate(("checkpoint_every", "evaluate_every", "steps"))
    for k, averaging in enumerate(("none", "ema"))
]
"""All combinations. Half of them are long tests; the others contain every pair of values."""


@pytest.mark.parametrize(("where", "due", "averaging"), CASES)
def test_a_non_finite_value_is_reported_with_step_and_examples_and_never_saved(
    where: str, due: str, averaging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _inject(where, monkeypatch)
    every = {"checkpoint_every": 4, "evaluate_every": 4, "steps": 12, due: 5}
    changes = [f"training.{name}={value}" for name, value in every.items()]
    config = tiny_config(*changes, f"training.averaging.kind={averaging}")
    with pytest.raises(TrainingError) as caught:
        train(config, tmp_path / "run")
    message = str(caught.value)
    assert f"{tmp_path / 'run'}: step 5: " in message
    assert "Training examples of this step, counted from 0 after filters: " in message
    assert "training.optimizer.learning_rate" in message
    if where != "loss":
        assert "encoder" in message
    files = list((tmp_path / "run").rglob("*.safetensors"))
    assert files or due == "checkpoint_every"
    for path in files:
        assert all(torch.isfinite(tensor).all() for tensor in read_tensors(path).values())
    assert read_events(tmp_path / "run")[-1]["event"] != "end"
    monkeypatch.undo()
    assert train(config, tmp_path / "run", resume=True).reason == "done"


def _session_on_a_gpu(step: int) -> Any:
    return SimpleNamespace(
        step=step,
        folder=Path("run"),
        batches_per_step=1,
        stream=SimpleNamespace(position=(0, 0), examples_from=lambda position, count: [7, 3]),
        world=SimpleNamespace(device=torch.device("cuda")),
    )


def _finish_step_and_fail(session: Any) -> None:
    session.step += 1
    raise TrainingError("the loss is nan")


def test_on_a_gpu_the_report_names_an_interval_of_steps_and_no_examples() -> None:
    """The loss of a step is read up to MAX_DELAY steps later, together with those of LOG_EVERY steps."""
    session = _session_on_a_gpu(step=99)
    with (
        pytest.raises(TrainingError, match=r"^run: between steps 72 and 100: the loss is nan$"),
        loop._locate_failure(session),
    ):
        _finish_step_and_fail(session)


def test_on_a_gpu_an_error_inside_a_step_is_reported_with_step_and_examples() -> None:
    """For example, a single example that does not fit into the memory."""
    message = r"^run: step 100: it does not fit\. Training examples of this step, .*: 7, 3$"
    with (
        pytest.raises(TrainingError, match=message),
        loop._locate_failure(_session_on_a_gpu(step=99)),
    ):
        raise TrainingError("it does not fit")


def test_a_non_finite_dev_loss_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "corpus_loss", lambda *_: (float("nan"), 1))
    with pytest.raises(TrainingError, match=r"step 4: the loss on the dev split is nan"):
        train(tiny_config(), tmp_path / "run")
    assert not (tmp_path / "run" / "weights").exists()
