"""Dropout is applied at every configured site, and only in training."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.interface import DecoderOutput
from seqloom.models.seq2seq import Model
from seqloom.nn.multihead import MultiHeadAttention

VOCABULARY = 12
RATE = 0.5


def recurrent(**settings: Any) -> dict[str, Any]:
    side = {"kind": "recurrent", "width": 8, "layers": 2, "dropout": RATE}
    attention = {"kind": "attention", "dropout": RATE}
    encoder = {**side, "weight_dropout": RATE}
    return {"encoder": encoder, "decoder": {**side, "attention": attention, **settings}}


def transformer(norm: str) -> dict[str, Any]:
    side = {
        "kind": "transformer",
        "width": 8,
        "layers": 2,
        "feedforward": 16,
        "norm": norm,
        "dropout": RATE,
        "feedforward_dropout": RATE,
        "attention": {
            "projection": "linear",
            "score": {"kind": "dot"},
            "heads": 2,
            "output_projection": True,
            "dropout": RATE,
        },
    }
    return {"encoder": side, "decoder": side}


MODELS = {
    "recurrent, parallel": recurrent(weight_dropout=RATE),
    "recurrent, locked": recurrent(locked_dropout=True, weight_dropout=RATE),
    "recurrent, lstm": recurrent(cell="lstm", weight_dropout=RATE, initial_state="mlp"),
    "recurrent, stepwise": recurrent(context=("input", "readout")),
    "transformer, pre-norm": transformer("pre"),
    "transformer, post-norm": transformer("post"),
}


def build(tables: dict[str, Any]) -> Model:
    torch.manual_seed(0)
    signature = Signature(Tokens(VOCABULARY), Tokens(VOCABULARY), shared=False)
    return build_model(ModelConfig.model_validate(tables), signature).double()


def example_batch() -> Batch:
    ids = torch.arange(4 * 6).reshape(4, 6) * 5 % (VOCABULARY - 4) + 4
    padded = Padded(ids, torch.tensor([6, 4, 5, 6]))
    return Batch(padded, padded, padded)


def features(model: Model, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    with torch.no_grad():
        output: DecoderOutput = model(example_batch())
        return output.features


def dropout_sites(model: Model) -> dict[str, nn.Dropout | MultiHeadAttention]:
    """Every module with dropout, by name."""
    return {
        name: part
        for name, part in model.named_modules()
        if isinstance(part, nn.Dropout | MultiHeadAttention)
    }


def rate(part: nn.Dropout | MultiHeadAttention) -> float:
    return part.p if isinstance(part, nn.Dropout) else part.dropout


def set_rate(part: nn.Dropout | MultiHeadAttention, rate: float) -> None:
    if isinstance(part, nn.Dropout):
        part.p = rate
    else:
        part.dropout = rate


@pytest.mark.parametrize("tables", MODELS.values(), ids=MODELS)
def test_every_site_has_its_rate_and_changes_the_features(tables: dict[str, Any]) -> None:
    model = build(tables).train()
    sites = dropout_sites(model)
    assert {name: rate(part) for name, part in sites.items()} == dict.fromkeys(sites, RATE)
    for part in sites.values():
        set_rate(part, 0.0)
    expected = features(model)
    for name, part in sites.items():
        set_rate(part, 0.9)
        assert not torch.allclose(features(model), expected), f"{name} drops nothing"
        set_rate(part, 0.0)


@pytest.mark.parametrize("tables", MODELS.values(), ids=MODELS)
def test_each_training_pass_draws_a_new_mask_and_evaluation_draws_none(
    tables: dict[str, Any],
) -> None:
    model = build(tables).train()
    assert not torch.allclose(features(model, seed=1), features(model, seed=2))
    model.eval()
    assert torch.equal(features(model, seed=1), features(model, seed=2))


class DropOneCall(nn.Module):
    """Drops everything in call `number`, from 0, and nothing in all other calls."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.calls = 0

    def forward(self, states: Tensor) -> Tensor:
        self.calls += 1
        return torch.zeros_like(states) if self.calls == self.number + 1 else states


@pytest.mark.parametrize(
    ("layers", "context"),
    [
        (1, ("readout",)),
        (3, ("readout",)),
        (1, ("input", "readout")),
        (3, ("input", "readout")),
        (3, ("layer",)),
    ],
)
def test_a_recurrent_decoder_has_dropout_between_its_layers_and_before_the_readout(
    layers: int, context: tuple[str, ...]
) -> None:
    model = build(recurrent(layers=layers, context=context)).eval()
    batch = example_batch()
    positions = batch.inputs.values.shape[1] if "input" in context else 1
    expected = positions * (layers - 1) + 1
    expected_features = features(model)
    for number in range(expected):
        model.decoder.dropout = dropout = DropOneCall(number)
        last = features(model)
        assert not torch.allclose(last, expected_features)
        assert dropout.calls == expected
    # The last site is before the readout, whose features are then all zero.
    assert not last.any()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_single_step_has_dropout_at_the_same_sites(layers: int) -> None:
    model = build(recurrent(layers=layers)).eval()
    batch = example_batch()
    tokens = batch.inputs.values[:, 0]
    with torch.no_grad():
        memory = model.encode(batch.source, batch.size)
        expected = model.decoder.step(tokens, model.decoder.start(memory, 1)).logits
        for number in range(layers):
            model.decoder.dropout = DropOneCall(number)
            logits = model.decoder.step(tokens, model.decoder.start(memory, 1)).logits
            assert not torch.allclose(logits, expected)
    # Without features the logits are the bias of the readout, the same for every row.
    assert torch.allclose(logits, logits[:1].expand_as(logits))
