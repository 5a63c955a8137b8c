"""Minimum risk: outputs that are better than the model's others become likelier, the rest less."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature, Tokens
from seqloom.data.batching.collate import collate
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import log_softmax
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.tasks.minimum_risk import (
    Ids,
    Samples,
    minimum_risk_loss,
    policy_gradient_loss,
    score_samples,
)
from seqloom.text.vocabulary import END, PAD, START
from seqloom.training.loop import train
from tiny_runs import STILL, TRANSFORMER, journal, outcome, recipe

SIZE = 6
COPYING = ("text.shared=true", "model.decoder.copying=true")
DECODERS = {
    "recurrent": STILL,
    "transformer": TRANSFORMER,
    "recurrent, copying": (*STILL, *COPYING),
    "transformer, copying": (*TRANSFORMER, *COPYING),
}
every_decoder = pytest.mark.parametrize("changes", DECODERS.values(), ids=list(DECODERS))


def build(*changes: str, size: int = SIZE) -> Model:
    torch.manual_seed(0)
    signature = Signature(Tokens(size), Tokens(size), shared="text.shared=true" in changes)
    return build_model(recipe(*changes).model, signature).double()


def batch_of(*pairs: tuple[Sequence[int], Sequence[int]]) -> Batch:
    sources, targets = zip(*pairs, strict=True)
    return collate(
        [np.array(one, np.int32) for one in sources], [np.array(one, np.int32) for one in targets]
    )


def gradient(model: Model, value: Tensor) -> Tensor:
    gradients = torch.autograd.grad(value, list(model.parameters()), allow_unused=True)
    return torch.cat([each.flatten() for each in gradients if each is not None])


def everything_of_two_tokens() -> Padded:
    """All that can be put out where there is room for two tokens."""
    others = [token for token in range(SIZE) if token != END]
    rows = [[END, PAD], *([one, END] for one in others)]
    rows += [list(two) for two in itertools.product(others, others)]
    lengths = [1] + [2] * (len(rows) - 1)
    return Padded(torch.tensor(rows), torch.tensor(lengths))


def as_inputs(targets: Tensor) -> Tensor:
    return torch.cat([torch.full_like(targets[:, :1], START), targets[:, :-1]], dim=1)


@every_decoder
def test_its_gradient_is_on_average_that_of_the_expected_reward(changes: tuple[str, ...]) -> None:
    """Every pair of outputs there is, each as often as the model would draw it."""
    model = build(*changes)
    source = batch_of(([4, 5, 4], [4])).source
    memory = model.encode(source, 1)
    every = everything_of_two_tokens()
    count = len(every.values)
    rewards = torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    logits = model.decoder(as_inputs(every.values), memory.repeated(count)).logits()
    logs = log_softmax(logits).gather(-1, every.values.unsqueeze(-1)).squeeze(-1)
    probabilities = torch.where(every.mask, logs, 0.0).sum(1).exp()
    assert probabilities.sum().item() == pytest.approx(1)
    wanted = -gradient(model, (probabilities * rewards).sum())

    pairs = torch.cartesian_prod(torch.arange(count), torch.arange(count)).flatten()
    weights = (probabilities.detach()[pairs].view(-1, 2)).prod(dim=1, keepdim=True)
    outputs = Samples(
        as_inputs(every.values[pairs]),
        Padded(every.values[pairs], every.lengths[pairs]),
        weights * rewards[pairs].view(-1, 2),  # it is linear in the rewards
    )
    memory = model.encode(source, 1)
    found = gradient(model, policy_gradient_loss(model, memory.repeated(count**2), outputs))
    torch.testing.assert_close(found, wanted)


@every_decoder
def test_a_model_learns_what_no_truth_has_told_it(changes: tuple[str, ...]) -> None:
    """Samples are worth what share of them is one token, which the truth does not have at all."""
    model = build(*changes, size=9).float().train()
    batch = batch_of(([5, 6], [7, 7, 7]), ([6], [7, 7, 7, 7]))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)

    def judge(outputs: Sequence[Ids], truth: Ids) -> list[float]:
        assert set(truth) == {7}
        return [output.count(8) / max(len(output), 1) for output in outputs]

    losses = []
    torch.manual_seed(1)
    for _ in range(30):
        optimizer.zero_grad()
        loss = minimum_risk_loss(model, batch, judge, samples=8) / batch.num_targets
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(0 <= loss <= 1 for loss in losses)  # 1 - the mean reward
    assert losses[0] > 0.5
    assert np.mean(losses[-5:]) < 0.2


def test_outputs_that_are_all_as_good_teach_nothing() -> None:
    model, batch = build(*STILL).train(), batch_of(([4, 5], [4, 5]), ([5], [4]))
    loss = minimum_risk_loss(model, batch, lambda outputs, truth: [0.25] * 3, samples=3)
    assert loss.item() == pytest.approx(0.75 * batch.num_targets)
    assert gradient(model, loss).abs().max() == 0
    assert model.decoder.training, "dropout is on again"


def test_outputs_are_judged_without_end_and_taught_with_it() -> None:
    batch = batch_of(([4], [4, 5]), ([5], []))
    seen: list[object] = []

    def judge(outputs: Sequence[Ids], truth: Ids) -> list[float]:
        seen.append((outputs, truth))
        return [len(output) / 4 for output in outputs]

    def drawn(*tokens: int, finished: bool = True) -> Hypothesis:
        return Hypothesis(tokens, finished, (), 0.0, None)

    outputs = score_samples(
        [[drawn(4, 5), drawn(5, 5, 5, finished=False)], [drawn(), drawn(4)]], batch, judge
    )
    assert seen == [([(4, 5), (5, 5, 5)], [4, 5]), ([(), (4,)], [])]
    expected = [[4, 5, END], [5, 5, 5], [END, PAD, PAD], [4, END, PAD]]
    assert outputs.targets.values.tolist() == expected
    assert outputs.targets.lengths.tolist() == [3, 3, 1, 2]
    assert outputs.inputs[1].tolist() == [START, 5, 5]
    assert outputs.advantages.tolist() == [[-0.25, 0.25], [-0.25, 0.25]]


RISKY = ("training.minimum_risk={after=6, samples=3}", "training.stopping.score=bleu")


@pytest.mark.parametrize(
    "more",
    [
        STILL,
        (*TRANSFORMER, "training.minimum_risk.share=0.5", "training.minimum_risk.utility=chrf"),
    ],
    ids=["recurrent", "transformer, beside the truth"],
)
def test_a_run_that_was_stopped_while_it_took_risks_goes_on(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    changes = (*RISKY, *more)
    train(recipe(*changes), tmp_path / "whole")
    train(recipe(*changes, "training.steps=9"), tmp_path / "parts")
    train(recipe(*changes), tmp_path / "parts", resume=True)
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")
    plain = [change for change in changes if "training" not in change]
    train(recipe(*plain), tmp_path / "plain")
    assert outcome(tmp_path / "plain") != outcome(tmp_path / "whole")


def test_the_loss_is_the_truths_until_risks_are_taken(tmp_path: Path) -> None:
    """A fresh model finds the truth improbable; what it puts out is never worse than 1."""
    changes = (
        *RISKY,
        "training.minimum_risk.after=20",
        "training.steps=40",
        "training.evaluate_every=40",
        "training.optimizer.learning_rate=1e-5",
    )
    train(recipe(*changes), tmp_path / "run")
    first, second = (line for line in journal(tmp_path / "run") if line["event"] == "step")
    assert first["loss"] > 1.5
    assert "perplexity" in first
    assert 0 <= second["loss"] <= 1
    assert "perplexity" not in second


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("training.stopping.score=loss",), "set stopping.score to a score of outputs"),
        ((*TRANSFORMER, "training.batching=packed"), "use 'padded' or 'bucketed'"),
        (("task.tag_side=target",), "set task.tag_side = 'source'"),
        (("training.minimum_risk.samples=1",), "training.minimum_risk.samples"),
    ],
)
def test_what_cannot_be_judged_is_refused(changes: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        recipe(*RISKY, *changes)
