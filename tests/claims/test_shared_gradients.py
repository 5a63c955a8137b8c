"""Recurrent decoders whose steps share the gradients of keys, values and weights have the gradients
of autograd."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from zoo import EVERY_DECODER, VOCABULARY, Specimen

from seqloom.models.seq2seq import Model
from seqloom.nn import recurrent
from seqloom.nn.fast import repeated_attention
from seqloom.text.vocabulary import PAD

RECURRENT = [specimen for specimen in EVERY_DECODER if specimen.config.decoder.kind == "recurrent"]
EXACT = torch.float64
LENGTHS = (5, 2, 4)


def gradients(model: Model, specimen: Specimen) -> dict[str, Tensor | None]:
    """Gradients of all weights, for a loss at six positions of three rows."""
    inputs, targets = torch.randint(
        4, VOCABULARY, (2, 3, 6), generator=torch.Generator().manual_seed(3)
    )
    memory = model.encode(specimen.source(LENGTHS), 3)
    loss = model.decoder(inputs, memory).loss(targets, 0.1, PAD)
    names, weights = zip(*model.named_parameters(), strict=True)
    values = torch.autograd.grad(loss, weights, allow_unused=True)
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize("specimen", RECURRENT, ids=lambda one: one.name)
def test_shared_gradients_equal_those_of_autograd(
    specimen: Specimen, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = specimen.build(EXACT)
    model.requires_grad_()
    shared = gradients(model, specimen)
    for module in (repeated_attention, recurrent):
        monkeypatch.setattr(module, "trains_on_cpu", lambda tensor, weight: False)
    expected = gradients(model, specimen)
    assert any(gradient is not None for gradient in expected.values())
    torch.testing.assert_close(shared, expected)  # the message names the weight that differs


def test_some_decoders_share_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would compare autograd with itself."""
    calls = []
    original: Callable[..., object] = repeated_attention._AttentionStep.apply

    def counted(*arguments: object) -> object:
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(repeated_attention._AttentionStep, "apply", counted)
    for specimen in RECURRENT[:40]:
        gradients(specimen.build(EXACT).requires_grad_(), specimen)
    assert calls
