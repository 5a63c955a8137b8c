"""R-Drop: the mean loss of two passes, and a penalty for their divergence."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.core.signature import Signature, Tokens
from seqloom.data.batching.collate import collate
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.tasks.losses import r_drop_loss
from seqloom.text.vocabulary import PAD
from seqloom.training.loop import train
from support.tiny_runs import NO_DROPOUT, TRANSFORMER, read_events, tiny_config
from support.token_loss import token_loss

SIZE = 12
PAIRS = [([4, 5, 6], [7, 8]), ([9, 4], [5, 5, 6, 11]), ([10], [])]
COPYING = ("text.shared=true", "model.decoder.copying=true")


def new_batch() -> Batch:
    return collate(
        [np.array(source, np.int32) for source, _ in PAIRS],
        [np.array(target, np.int32) for _, target in PAIRS],
    )


def new_model(*settings: str) -> Model:
    torch.manual_seed(0)
    signature = Signature(Tokens(SIZE), Tokens(SIZE), shared=False)
    return build_model(tiny_config(*settings).model, signature).double().train()


def gradient(model: Model, loss: Tensor) -> Tensor:
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.cat([each.flatten() for each in gradients if each is not None])


def reference_loss(model: Model, batch: Batch, smoothing: float, weight: float) -> Tensor:
    """The formula of `r_drop_loss`, position by position."""
    passes = [model(batch).logits().softmax(-1) for _ in range(2)]
    total = torch.zeros((), dtype=torch.float64)
    for row, targets in enumerate(batch.targets.values.tolist()):
        for position, target in enumerate(targets):
            if target == PAD:
                continue
            p, q = passes[0][row, position], passes[1][row, position]
            smoothed = torch.full((SIZE,), smoothing / SIZE, dtype=torch.float64)
            smoothed[target] += 1 - smoothing
            total = total - (smoothed * p.log()).sum() / 2 - (smoothed * q.log()).sum() / 2
            total = total + weight / 4 * (p * (p / q).log()).sum()
            total = total + weight / 4 * (q * (q / p).log()).sum()
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    "settings",
    [NO_DROPOUT, TRANSFORMER, (*NO_DROPOUT, *COPYING), (*TRANSFORMER, *COPYING)],
    ids=["recurrent", "transformer", "recurrent, copying", "transformer, copying"],
)
def test_without_dropout_the_loss_is_the_cross_entropy(
    settings: tuple[str, ...], smoothing: float
) -> None:
    model, batch = new_model(*settings), new_batch()
    expected = token_loss(model, batch, smoothing)
    for weight in (0.0, 5.0):
        torch.testing.assert_close(r_drop_loss(model, batch, smoothing, weight), expected)


@pytest.mark.parametrize("copying", [(), COPYING], ids=["generating", "copying"])
@pytest.mark.parametrize("weight", [0.0, 1.0, 5.0])
def test_loss_and_gradient_equal_the_formula(weight: float, copying: tuple[str, ...]) -> None:
    model = new_model("model.encoder.dropout=0.4", "model.decoder.dropout=0.4", *copying)
    batch = new_batch()
    torch.manual_seed(3)
    loss = r_drop_loss(model, batch, 0.1, weight)
    torch.manual_seed(3)
    expected = reference_loss(model, batch, 0.1, weight)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient(model, loss), gradient(model, expected))


def test_penalty_grows_linearly_with_its_weight() -> None:
    model = new_model("model.encoder.dropout=0.4", "model.decoder.dropout=0.4")
    losses = []
    for weight in (0.0, 1.0, 2.0):
        torch.manual_seed(3)
        losses.append(float(r_drop_loss(model, new_batch(), 0.0, weight).detach()))
    assert losses[1] > losses[0]
    assert losses[2] - losses[1] == pytest.approx(losses[1] - losses[0])


def test_padding_does_not_change_the_loss() -> None:
    model, batch = new_model(*NO_DROPOUT), new_batch()
    expected = r_drop_loss(model, batch, 0.1, 5.0)
    losses = [
        r_drop_loss(
            model,
            collate([np.array(source, np.int32)], [np.array(target, np.int32)]),
            0.1,
            5.0,
        )
        for source, target in PAIRS
    ]
    torch.testing.assert_close(expected, torch.stack(losses).sum())
    targets = batch.targets
    other_padding = replace(targets, values=targets.values.masked_fill(~targets.mask, 7))
    loss = r_drop_loss(model, replace(batch, targets=other_padding), 0.1, 5.0)
    torch.testing.assert_close(loss, expected)


@pytest.mark.slow
def test_penalty_is_part_of_the_training_loss_but_not_of_the_dev_loss(tmp_path: Path) -> None:
    settings = (
        "model.encoder.dropout=0.5",
        "model.decoder.dropout=0.5",
        "training.r_drop=50.0",
        "training.steps=20",
        "training.evaluate_every=20",
        "training.optimizer.learning_rate=1e-5",
    )
    train(tiny_config(*settings), tmp_path / "run")
    events = {event["event"]: event for event in read_events(tmp_path / "run")}
    assert events["step"]["loss"] > 1.2 * events["evaluate"]["loss"]
    assert "perplexity" not in events["step"]
    plain = [setting for setting in settings if "r_drop" not in setting]
    train(tiny_config(*plain), tmp_path / "plain")
    events = {event["event"]: event for event in read_events(tmp_path / "plain")}
    assert events["step"]["loss"] < 1.2 * events["evaluate"]["loss"]
