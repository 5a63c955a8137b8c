"""Decoder inputs in training: target tokens, predictions, or a mixture of both."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqloom.core.batch import Batch, Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.data.batching.collate import collate
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import END, START
from seqloom.training.loss import mix_decoder_inputs
from support.tiny_runs import NO_DROPOUT, TRANSFORMER, tiny_config
from support.token_loss import token_loss

SIZE = 9


@pytest.fixture(params=["recurrent", "transformer"])
def model(request: pytest.FixtureRequest) -> Model:
    torch.manual_seed(3)
    changes = NO_DROPOUT if request.param == "recurrent" else TRANSFORMER
    model = build_model(
        tiny_config(*changes).model, Signature(Tokens(SIZE), Tokens(SIZE), shared=False)
    )
    with torch.no_grad():  # larger weights: predictions depend on the prefix and include END
        for parameter in model.parameters():
            parameter.mul_(4)
    return model


@pytest.fixture
def batch() -> Batch:
    generator = np.random.default_rng(0)
    sources = [generator.integers(4, SIZE, n).astype(np.int32) for n in (3, 1, 6, 4, 5, 2)]
    targets = [generator.integers(4, SIZE, n).astype(np.int32) for n in (6, 2, 5, 0, 6, 3)]
    return collate(sources, targets)


def greedy_inputs(model: Model, batch: Batch) -> torch.Tensor:
    """(B, T) START and the greedy predictions, computed for each sentence alone."""
    rows = []
    for row in range(batch.size):
        assert isinstance(batch.source, Padded)
        length = int(batch.source.lengths[row])
        source = replace(
            batch.source,
            values=batch.source.values[row : row + 1, :length],
            lengths=batch.source.lengths[row : row + 1],
        )
        state = model.decoder.start(model.encode(source, 1), batch.inputs.values.shape[1])
        tokens = [torch.tensor([START])]
        for _ in range(batch.inputs.values.shape[1] - 1):
            step = model.decoder.step(tokens[-1], state)
            state = step.state
            tokens.append(step.logits.argmax(-1))
        rows.append(torch.cat(tokens))
    return torch.stack(rows)


def test_a_target_share_of_one_returns_the_batch_unchanged(model: Model, batch: Batch) -> None:
    assert mix_decoder_inputs(model, batch, 1.0) is batch


@torch.no_grad()
def test_a_target_share_of_zero_feeds_greedy_predictions(model: Model, batch: Batch) -> None:
    mixed = mix_decoder_inputs(model, batch, 0.0)
    expected = greedy_inputs(model.eval(), batch)
    assert torch.equal(mixed.inputs.values, expected)
    assert not torch.equal(mixed.inputs.values, batch.inputs.values)
    assert torch.equal(mixed.inputs.lengths, batch.inputs.lengths)
    assert mixed.targets is batch.targets


@torch.no_grad()
def test_predictions_are_made_without_dropout(batch: Batch) -> None:
    signature = Signature(Tokens(SIZE), Tokens(SIZE), shared=False)
    changes = ("model.encoder.dropout=0.9", "model.decoder.dropout=0.9")
    model = build_model(tiny_config(*changes).model, signature).train()
    mixed = mix_decoder_inputs(model, batch, 0.0)
    assert torch.equal(mixed.inputs.values, greedy_inputs(model.eval(), batch))


def test_an_early_end_is_fed_like_any_token_and_the_loss_is_finite(
    model: Model, batch: Batch
) -> None:
    ended = batch.inputs.values.clone()
    ended[:, 1] = END
    fed = replace(batch, inputs=replace(batch.inputs, values=ended))
    loss = token_loss(model, fed, 0.0)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


def test_a_mixture_follows_the_target_share_and_begins_with_start(
    model: Model, batch: Batch
) -> None:
    torch.manual_seed(0)
    shares = []
    for share in (0.2, 0.8):
        mixed = torch.cat(
            [mix_decoder_inputs(model, batch, share).inputs.values for _ in range(20)]
        )
        targets = batch.inputs.values.repeat(20, 1)
        assert (mixed[:, 0] == START).all()
        shares.append(float((mixed == targets)[:, 1:].float().mean()))
    assert shares[0] < shares[1] < 1
    assert shares[1] > 0.75


def test_mixing_keeps_training_mode_and_gradients(model: Model, batch: Batch) -> None:
    for training in (True, False):
        model.train(training)
        mix_decoder_inputs(model, batch, 0.0)
        assert model.training == training
        assert all(module.training == training for module in model.modules())
        assert all(parameter.grad is None for parameter in model.parameters())


def test_training_mode_is_restored_after_an_out_of_memory_error(
    model: Model, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step is repeated on smaller batches, and dropout must be active then."""
    model.train()

    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(model.decoder, "step", fail)
    with pytest.raises(torch.OutOfMemoryError):
        mix_decoder_inputs(model, batch, 0.5)
    assert model.training
