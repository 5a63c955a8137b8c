"""The GRU with a hand-written gradient has the outputs and gradients of torch's GRU."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.nn.recurrent import RecurrentLayer


@settings(deadline=None, max_examples=30)
@given(
    steps=st.integers(1, 6),
    rows=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    inputs_need_gradient=st.booleans(),
)
def test_a_gru_in_training_has_the_outputs_and_gradients_of_autograd(
    steps: int, rows: int, seed: int, inputs_need_gradient: bool
) -> None:
    torch.manual_seed(seed)
    layer = RecurrentLayer("gru", input_width=3, width=4).double()
    inputs = torch.randn(rows, steps, 3, dtype=torch.float64, requires_grad=inputs_need_gradient)
    state = torch.randn(rows, 4, dtype=torch.float64, requires_grad=True)
    leaves = [*layer.parameters(), state, *([inputs] if inputs_need_gradient else [])]
    hidden, last = layer(inputs, state)
    expected, expected_last = layer.network(inputs, state.unsqueeze(0))
    torch.testing.assert_close(hidden, expected)
    torch.testing.assert_close(last, expected_last.squeeze(0))
    weights = torch.randn_like(hidden)
    for gradient, expected_gradient in zip(
        torch.autograd.grad((hidden * weights).sum() + last.square().sum(), leaves),
        torch.autograd.grad((expected * weights).sum() + expected_last.square().sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(gradient, expected_gradient)
