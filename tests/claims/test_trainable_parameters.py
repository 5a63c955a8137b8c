"""Every parameter of every model gets a gradient."""

import torch
from zoo import VOCABULARY, Specimen, every_decoder

from seqloom.nn.attention import ExactScore, RbfScore
from seqloom.nn.losses import cross_entropy_sum
from seqloom.nn.multihead import MultiHeadAttention


@every_decoder
def test_every_parameter_gets_a_gradient(specimen: Specimen) -> None:
    """Except the bias of keys, which the softmax may cancel: see MultiHeadAttention.

    Hard selections give no gradient to queries and keys, so they are replaced by the softmax.
    """
    model = specimen.build().requires_grad_(True)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.selection = "softmax"
            if isinstance(module.score, ExactScore):
                module.score = RbfScore(1.0)
    generator = torch.Generator().manual_seed(2)
    inputs, targets = torch.randint(4, VOCABULARY, (2, 3, 6), generator=generator)
    logits = model.decoder(inputs, specimen.memory(model)).logits()
    cross_entropy_sum(logits.flatten(0, 1), targets.flatten()).backward()
    without_gradient = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or float(parameter.grad.abs().max()) < 1e-12
    ]
    assert not [name for name in without_gradient if not name.endswith("to_key.bias")]
