"""Minimum risk training: samples with a higher reward than the others become more probable."""

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
from seqloom.tasks.losses import (
    Ids,
    Samples,
    minimum_risk_loss,
    policy_gradient_loss,
    score_samples,
)
from seqloom.text.vocabulary import END, PAD, START
from seqloom.training.loop import train
from support.tiny_runs import (
    NO_DROPOUT,
    TRANSFORMER,
    checkpoint_digests,
    read_events,
    tiny_config,
)

SIZE = 6
COPYING = ("text.shared=true", "model.decoder.copying=true")
DECODERS = {
    "recurrent": NO_DROPOUT,
    "transformer": TRANSFORMER,
    "recurrent, copying": (*NO_DROPOUT, *COPYING),
    "transformer, copying": (*TRANSFORMER, *COPYING),
}
every_decoder = pytest.mark.parametrize("settings", DECODERS.values(), ids=list(DECODERS))


def new_model(*settings: str, size: int = SIZE) -> Model:
    torch.manual_seed(0)
    signature = Signature(Tokens(size), Tokens(size), shared="text.shared=true" in settings)
    return build_model(tiny_config(*settings).model, signature).double()


def new_batch(*pairs: tuple[Sequence[int], Sequence[int]]) -> Batch:
    sources, targets = zip(*pairs, strict=True)
    return collate(
        [np.array(source, np.int32) for source in sources],
        [np.array(target, np.int32) for target in targets],
    )


def gradient(model: Model, value: Tensor) -> Tensor:
    gradients = torch.autograd.grad(value, list(model.parameters()), allow_unused=True)
    return torch.cat([each.flatten() for each in gradients if each is not None])


def all_outputs_of_two_tokens() -> Padded:
    """Every possible output with a limit of two tokens."""
    others = [token for token in range(SIZE) if token != END]
    rows = [[END, PAD], *([token, END] for token in others)]
    rows += [list(pair) for pair in itertools.product(others, others)]
    lengths = [1] + [2] * (len(rows) - 1)
    return Padded(torch.tensor(rows), torch.tensor(lengths))


def shift_right(targets: Tensor) -> Tensor:
    return torch.cat([torch.full_like(targets[:, :1], START), targets[:, :-1]], dim=1)


@every_decoder
def test_expected_gradient_is_that_of_the_expected_reward(settings: tuple[str, ...]) -> None:
    """Sums over every pair of outputs, weighted with their probability."""
    model = new_model(*settings)
    source = new_batch(([4, 5, 4], [4])).source
    memory = model.encode(source, 1)
    outputs = all_outputs_of_two_tokens()
    count = len(outputs.values)
    rewards = torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    logits = model.decoder(shift_right(outputs.values), memory.repeated(count)).logits()
    log_p = log_softmax(logits).gather(-1, outputs.values.unsqueeze(-1)).squeeze(-1)
    probabilities = torch.where(outputs.mask, log_p, 0.0).sum(1).exp()
    assert probabilities.sum().item() == pytest.approx(1)
    expected = -gradient(model, (probabilities * rewards).sum())

    pairs = torch.cartesian_prod(torch.arange(count), torch.arange(count)).flatten()
    weights = (probabilities.detach()[pairs].view(-1, 2)).prod(dim=1, keepdim=True)
    samples = Samples(
        shift_right(outputs.values[pairs]),
        Padded(outputs.values[pairs], outputs.lengths[pairs]),
        weights * rewards[pairs].view(-1, 2),  # the loss is linear in the rewards
    )
    memory = model.encode(source, 1)
    computed = gradient(model, policy_gradient_loss(model, memory.repeated(count**2), samples))
    torch.testing.assert_close(computed, expected)


@pytest.mark.slow
@every_decoder
def test_model_learns_a_reward_that_the_references_contradict(settings: tuple[str, ...]) -> None:
    """The reward is the share of a token that no reference contains."""
    model = new_model(*settings, size=9).float().train()
    batch = new_batch(([5, 6], [7, 7, 7]), ([6], [7, 7, 7, 7]))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)

    def reward(outputs: Sequence[Ids], reference: Ids) -> list[float]:
        assert set(reference) == {7}
        return [output.count(8) / max(len(output), 1) for output in outputs]

    losses = []
    torch.manual_seed(1)
    for _ in range(30):
        optimizer.zero_grad()
        loss = minimum_risk_loss(model, batch, reward, samples=8) / batch.num_targets
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(0 <= loss <= 1 for loss in losses)  # 1 - the mean reward
    assert losses[0] > 0.5
    assert np.mean(losses[-5:]) < 0.2


def test_equal_rewards_give_a_zero_gradient() -> None:
    model, batch = new_model(*NO_DROPOUT).train(), new_batch(([4, 5], [4, 5]), ([5], [4]))
    loss = minimum_risk_loss(model, batch, lambda outputs, reference: [0.25] * 3, samples=3)
    assert loss.item() == pytest.approx(0.75 * batch.num_targets)
    assert gradient(model, loss).abs().max() == 0
    assert model.decoder.training, "training mode is restored after sampling"


def test_rewards_are_computed_without_end_and_targets_contain_it() -> None:
    batch = new_batch(([4], [4, 5]), ([5], []))
    calls: list[object] = []

    def reward(outputs: Sequence[Ids], reference: Ids) -> list[float]:
        calls.append((outputs, reference))
        return [len(output) / 4 for output in outputs]

    def hypothesis(*tokens: int, finished: bool = True) -> Hypothesis:
        return Hypothesis(tokens, finished, (), 0.0, None)

    samples = score_samples(
        [
            [hypothesis(4, 5), hypothesis(5, 5, 5, finished=False)],
            [hypothesis(), hypothesis(4)],
        ],
        batch,
        reward,
    )
    assert calls == [([(4, 5), (5, 5, 5)], [4, 5]), ([(), (4,)], [])]
    expected = [[4, 5, END], [5, 5, 5], [END, PAD, PAD], [4, END, PAD]]
    assert samples.targets.values.tolist() == expected
    assert samples.targets.lengths.tolist() == [3, 3, 1, 2]
    assert samples.inputs[1].tolist() == [START, 5, 5]
    assert samples.advantages.tolist() == [[-0.25, 0.25], [-0.25, 0.25]]


MINIMUM_RISK = ("training.minimum_risk={after=6, samples=3}", "training.stopping.score=bleu")


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        NO_DROPOUT,
        (*TRANSFORMER, "training.minimum_risk.share=0.5", "training.minimum_risk.utility=chrf"),
    ],
    ids=["recurrent", "transformer, with likelihood"],
)
def test_resumed_training_is_bit_identical(more: tuple[str, ...], tmp_path: Path) -> None:
    settings = (*MINIMUM_RISK, *more)
    train(tiny_config(*settings), tmp_path / "straight")
    train(tiny_config(*settings, "training.steps=9"), tmp_path / "resumed")
    train(tiny_config(*settings), tmp_path / "resumed", resume=True)
    assert checkpoint_digests(tmp_path / "resumed") == checkpoint_digests(tmp_path / "straight")
    plain = [setting for setting in settings if "training" not in setting]
    train(tiny_config(*plain), tmp_path / "plain")
    assert checkpoint_digests(tmp_path / "plain") != checkpoint_digests(tmp_path / "straight")


@pytest.mark.slow
def test_loss_is_the_likelihood_before_minimum_risk_training_starts(tmp_path: Path) -> None:
    """The cross-entropy of a fresh model is large; the risk is never above 1."""
    settings = (
        *MINIMUM_RISK,
        "training.minimum_risk.after=20",
        "training.steps=40",
        "training.evaluate_every=40",
        "training.optimizer.learning_rate=1e-5",
    )
    train(tiny_config(*settings), tmp_path / "run")
    before, after = (event for event in read_events(tmp_path / "run") if event["event"] == "step")
    assert before["loss"] > 1.5
    assert "perplexity" in before
    assert 0 <= after["loss"] <= 1
    assert "perplexity" not in after


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("training.stopping.score=loss",), "set stopping.score to a score of outputs"),
        ((*TRANSFORMER, "training.batching=packed"), "use 'padded' or 'bucketed'"),
        (("task.tag_side=target",), "set task.tag_side = 'source'"),
        (("training.minimum_risk.samples=1",), "training.minimum_risk.samples"),
    ],
)
def test_incompatible_settings_are_an_error(settings: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny_config(*MINIMUM_RISK, *settings)
