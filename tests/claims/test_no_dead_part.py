"""Every parameter of every model has a say in the loss."""

import pytest
import torch
from zoo import EVERY_DECODER, VOCABULARY, Specimen

from seqloom.nn.losses import cross_entropy_sum
from seqloom.nn.multihead import MultiHeadAttention


@pytest.mark.parametrize("specimen", EVERY_DECODER, ids=lambda one: one.name)
def test_the_loss_reaches_every_parameter(specimen: Specimen) -> None:
    """But for the bias of keys, which the softmax may take away: see MultiHeadAttention.

    A hard choice passes no gradient on to what it compares, whatever the model; with a soft one
    in its place, nothing may be left without.
    """
    model = specimen.build().requires_grad_(True)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.selection = "softmax"
    generator = torch.Generator().manual_seed(2)
    inputs, targets = torch.randint(4, VOCABULARY, (2, 3, 6), generator=generator)
    logits = model.decoder(inputs, specimen.memory(model)).logits()
    cross_entropy_sum(logits.flatten(0, 1), targets.flatten()).backward()
    dead = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or float(parameter.grad.abs().max()) < 1e-12
    ]
    assert not [name for name in dead if not name.endswith("to_key.bias")]
