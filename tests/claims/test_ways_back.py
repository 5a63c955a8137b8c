"""The way back of looks in turn is written out by hand (nn/looking.py), and brings the gradient that
autograd's own brings, whatever the switches of a recurrent decoder."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from zoo import EVERY_DECODER, VOCABULARY, Specimen

from seqloom.models.seq2seq import Model
from seqloom.nn import looking
from seqloom.text.vocabulary import PAD

RECURRENT = [one for one in EVERY_DECODER if one.config.decoder.kind == "recurrent"]
EXACT = torch.float64
LENGTHS = (5, 2, 4)


def gradients(model: Model, specimen: Specimen) -> dict[str, Tensor | None]:
    """Of every weight, for a loss at six positions of three rows."""
    inputs, targets = torch.randint(
        4, VOCABULARY, (2, 3, 6), generator=torch.Generator().manual_seed(3)
    )
    memory = model.encode(specimen.source(LENGTHS), 3)
    loss = model.decoder(inputs, memory).loss(targets, 0.1, PAD)
    names, weights = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad(loss, weights, allow_unused=True)
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("specimen", RECURRENT, ids=lambda one: one.name)
def test_a_way_back_that_is_written_out_brings_the_same_gradient(
    specimen: Specimen, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = specimen.build(EXACT)
    model.requires_grad_()
    written_out = gradients(model, specimen)
    monkeypatch.setattr(looking, "learns_on_cpu", lambda tensor: False)
    own = gradients(model, specimen)
    assert any(gradient is not None for gradient in own.values())
    torch.testing.assert_close(written_out, own)  # which names the weight that differs


def test_some_decoders_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the claim above would say nothing."""
    taken = []
    original: Callable[..., object] = looking._Look.apply

    def watched(*arguments: object) -> object:
        taken.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(looking._Look, "apply", watched)
    for specimen in RECURRENT[:40]:
        gradients(specimen.build(EXACT).requires_grad_(), specimen)
    assert taken
