"""Dropout is wherever the recipe says it is, and only while learning."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.nn.multihead import MultiHeadAttention

VOCABULARY = 12
RATE = 0.5


def recurrent(**switches: Any) -> dict[str, Any]:
    side = {"kind": "recurrent", "width": 8, "layers": 2, "dropout": RATE}
    attention = {"kind": "attention", "dropout": RATE}
    encoder = {**side, "weight_dropout": RATE}
    return {"encoder": encoder, "decoder": {**side, "attention": attention, **switches}}


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
            "merge": True,
            "dropout": RATE,
        },
    }
    return {"encoder": side, "decoder": side}


MODELS = {
    "recurrent, at once": recurrent(weight_dropout=RATE),
    "recurrent, locked": recurrent(locked_dropout=True, weight_dropout=RATE),
    "recurrent, lstm": recurrent(cell="lstm", weight_dropout=RATE, handover="mlp"),
    "recurrent, in turn": recurrent(context=("input", "readout")),
    "transformer, norm first": transformer("pre"),
    "transformer, norm last": transformer("post"),
}


def build(tables: dict[str, Any]) -> Model:
    torch.manual_seed(0)
    signature = Signature(Tokens(VOCABULARY), Tokens(VOCABULARY), shared=False)
    return build_model(ModelConfig.model_validate(tables), signature).double()


def some_batch() -> Batch:
    ids = torch.arange(4 * 6).reshape(4, 6) * 5 % (VOCABULARY - 4) + 4
    padded = Padded(ids, torch.tensor([6, 4, 5, 6]))
    return Batch(padded, padded, padded)


def features(model: Model, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    with torch.no_grad():
        found: Tensor = model(some_batch()).features
        return found


def sites(model: Model) -> dict[str, nn.Dropout | MultiHeadAttention]:
    """Every part that drops something, by its name."""
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
def test_every_site_has_its_rate_and_every_one_matters(tables: dict[str, Any]) -> None:
    model = build(tables).train()
    places = sites(model)
    assert {name: rate(part) for name, part in places.items()} == dict.fromkeys(places, RATE)
    for part in places.values():
        set_rate(part, 0.0)
    whole = features(model)
    for name, part in places.items():
        set_rate(part, 0.9)
        assert not torch.allclose(features(model), whole), f"{name} drops nothing"
        set_rate(part, 0.0)


@pytest.mark.parametrize("tables", MODELS.values(), ids=MODELS)
def test_dropout_is_drawn_anew_while_learning_and_gone_afterwards(tables: dict[str, Any]) -> None:
    model = build(tables).train()
    assert not torch.allclose(features(model, seed=1), features(model, seed=2))
    model.eval()
    assert torch.equal(features(model, seed=1), features(model, seed=2))


class DropOneCall(nn.Module):
    """Drops everything the n-th time it is called and nothing otherwise."""

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
def test_a_recurrent_decoder_drops_between_all_its_layers_and_before_the_readout(
    layers: int, context: tuple[str, ...]
) -> None:
    model = build(recurrent(layers=layers, context=context)).eval()
    batch = some_batch()
    positions = batch.inputs.values.shape[1] if "input" in context else 1
    expected = positions * (layers - 1) + 1
    whole = features(model)
    for number in range(expected):
        model.decoder.dropout = dropout = DropOneCall(number)
        last = features(model)
        assert not torch.allclose(last, whole)
        assert dropout.calls == expected
    # The last place is the one before the readout, which then sees nothing at all.
    assert not last.any()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_single_step_drops_in_the_same_places(layers: int) -> None:
    model = build(recurrent(layers=layers)).eval()
    batch = some_batch()
    tokens = batch.inputs.values[:, 0]
    with torch.no_grad():
        memory = model.encode(batch.source, batch.size)
        whole = model.decoder.step(tokens, model.decoder.start(memory, 1)).logits
        for number in range(layers):
            model.decoder.dropout = DropOneCall(number)
            logits = model.decoder.step(tokens, model.decoder.start(memory, 1)).logits
            assert not torch.allclose(logits, whole)
    # Without features nothing but the readout's bias is left, the same for every row.
    assert torch.allclose(logits, logits[:1].expand_as(logits))
