"""R-Drop: two passes, the mean of their losses, and a penalty for the difference."""

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
from seqloom.tasks.r_drop import r_drop_loss
from seqloom.text.vocabulary import PAD
from seqloom.training.loop import train
from tiny_runs import STILL, TRANSFORMER, journal, recipe
from token_loss import token_loss

SIZE = 12
PAIRS = [([4, 5, 6], [7, 8]), ([9, 4], [5, 5, 6, 11]), ([10], [])]


def some_batch() -> Batch:
    return collate(
        [np.array(source, np.int32) for source, _ in PAIRS],
        [np.array(target, np.int32) for _, target in PAIRS],
    )


def build(*changes: str) -> Model:
    torch.manual_seed(0)
    signature = Signature(Tokens(SIZE), Tokens(SIZE), shared=False)
    return build_model(recipe(*changes).model, signature).double().train()


def gradient(model: Model, loss: Tensor) -> Tensor:
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.cat([each.flatten() for each in gradients if each is not None])


def by_hand(model: Model, batch: Batch, smoothing: float, weight: float) -> Tensor:
    """The formula of the docstring, word by word, position by position."""
    passes = [model(batch).logits().softmax(-1) for _ in range(2)]
    total = torch.zeros((), dtype=torch.float64)
    for row, targets in enumerate(batch.targets.values.tolist()):
        for place, target in enumerate(targets):
            if target == PAD:
                continue
            p, q = passes[0][row, place], passes[1][row, place]
            share = torch.full((SIZE,), smoothing / SIZE, dtype=torch.float64)
            share[target] += 1 - smoothing
            total = total - (share * p.log()).sum() / 2 - (share * q.log()).sum() / 2
            total = total + weight / 4 * (p * (p / q).log()).sum()
            total = total + weight / 4 * (q * (q / p).log()).sum()
    return total


COPYING = ("text.shared=true", "model.decoder.copying=true")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    "changes",
    [STILL, TRANSFORMER, (*STILL, *COPYING), (*TRANSFORMER, *COPYING)],
    ids=["recurrent", "transformer", "recurrent, copying", "transformer, copying"],
)
def test_without_dropout_it_is_the_plain_loss_whatever_its_weight(
    changes: tuple[str, ...], smoothing: float
) -> None:
    model, batch = build(*changes), some_batch()
    plain = token_loss(model, batch, smoothing)
    for weight in (0.0, 5.0):
        torch.testing.assert_close(r_drop_loss(model, batch, smoothing, weight), plain)


@pytest.mark.parametrize("copying", [(), COPYING], ids=["speaking", "copying"])
@pytest.mark.parametrize("weight", [0.0, 1.0, 5.0])
def test_loss_and_gradient_are_those_of_the_formula(
    weight: float, copying: tuple[str, ...]
) -> None:
    model = build("model.encoder.dropout=0.4", "model.decoder.dropout=0.4", *copying)
    batch = some_batch()
    torch.manual_seed(3)
    loss = r_drop_loss(model, batch, 0.1, weight)
    torch.manual_seed(3)
    expected = by_hand(model, batch, 0.1, weight)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient(model, loss), gradient(model, expected))


def test_the_two_passes_differ_and_the_difference_is_paid_for() -> None:
    model = build("model.encoder.dropout=0.4", "model.decoder.dropout=0.4")
    losses = []
    for weight in (0.0, 1.0, 2.0):
        torch.manual_seed(3)
        losses.append(float(r_drop_loss(model, some_batch(), 0.0, weight).detach()))
    assert losses[1] > losses[0]
    assert losses[2] - losses[1] == pytest.approx(losses[1] - losses[0])


def test_padding_costs_nothing() -> None:
    model, batch = build(*STILL), some_batch()
    whole = r_drop_loss(model, batch, 0.1, 5.0)
    parts = [
        r_drop_loss(
            model,
            collate([np.array(source, np.int32)], [np.array(target, np.int32)]),
            0.1,
            5.0,
        )
        for source, target in PAIRS
    ]
    torch.testing.assert_close(whole, torch.stack(parts).sum())
    targets = batch.targets
    garbage = replace(targets, values=targets.values.masked_fill(~targets.mask, 7))
    torch.testing.assert_close(r_drop_loss(model, replace(batch, targets=garbage), 0.1, 5.0), whole)


def test_the_setting_reaches_training_and_leaves_the_dev_loss_alone(tmp_path: Path) -> None:
    changes = (
        "model.encoder.dropout=0.5",
        "model.decoder.dropout=0.5",
        "training.r_drop=50.0",
        "training.steps=20",
        "training.evaluate_every=20",
        "training.optimizer.learning_rate=1e-5",
    )
    train(recipe(*changes), tmp_path / "run")
    lines = {line["event"]: line for line in journal(tmp_path / "run")}
    assert lines["step"]["loss"] > 1.2 * lines["evaluate"]["loss"]  # which has no penalty in it
    assert "perplexity" not in lines["step"]
    plain = [change for change in changes if "r_drop" not in change]
    train(recipe(*plain), tmp_path / "plain")
    lines = {line["event"]: line for line in journal(tmp_path / "plain")}
    assert lines["step"]["loss"] < 1.2 * lines["evaluate"]["loss"]
