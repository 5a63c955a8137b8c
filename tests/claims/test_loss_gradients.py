"""Gradients of the training loss at hidden states, inside attention and at the weights."""

import pytest
import torch
from test_gradient_flow import batch_of
from token_loss import token_loss
from zoo import EVERY_DECODER, Specimen

from seqloom.analysis.loss_gradients import LossGradients, measure_loss_gradients
from seqloom.models.seq2seq import Model

every_decoder = pytest.mark.parametrize(
    "specimen", EVERY_DECODER, ids=lambda specimen: specimen.name
)


@every_decoder
def test_parameter_gradients_equal_those_of_the_training_loss(specimen: Specimen) -> None:
    model, batch = specimen.build(), batch_of(specimen)
    measured = measure_loss_gradients(model, batch)
    assert not any(parameter.requires_grad for parameter in model.parameters())
    model.requires_grad_(True)
    loss = token_loss(model, batch, 0.0)
    loss.backward()
    torch.testing.assert_close(measured.losses.sum(), loss.detach())
    for name, parameter in model.named_parameters():
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(measured.parameters[name], expected)
