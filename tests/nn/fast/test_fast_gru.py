"""The GRU with a hand-written gradient has the outputs and gradients of torch's GRU."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.core.batch import Padded
from seqloom.nn import recurrent
from seqloom.nn.fast import gru as fast_gru
from seqloom.nn.recurrent import LayerStep, RecurrentLayer


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


@pytest.mark.parametrize("is_arm", [True, False])
@pytest.mark.parametrize("rows", [1, fast_gru.MIN_ROWS_WITHOUT_GRADIENT])
def test_a_gru_without_gradients_has_the_outputs_of_torch_and_is_the_fast_one_for_many_rows_on_arm(
    monkeypatch: pytest.MonkeyPatch, is_arm: bool, rows: int
) -> None:
    monkeypatch.setattr(fast_gru, "IS_ARM", is_arm)
    calls: list[int] = []

    def counted_gru(*arguments: Tensor | list[Tensor]) -> Tensor:
        calls.append(rows)
        return fast_gru.gru(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recurrent, "gru", counted_gru)
    layer = RecurrentLayer("gru", input_width=3, width=4).eval()
    inputs, state = torch.randn(rows, 7, 3), torch.randn(rows, 4)
    with torch.inference_mode():
        hidden, last = layer(inputs, state)
        expected, expected_last = layer.network(inputs, state.unsqueeze(0))
    torch.testing.assert_close(hidden, expected)
    torch.testing.assert_close(last, expected_last.squeeze(0))
    assert bool(calls) == (is_arm and rows > 1)


@settings(deadline=None, max_examples=20)
@given(
    steps=st.integers(1, 5),
    rows=st.integers(1, 4),
    kinds=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_repeated_inputs_have_the_outputs_and_gradients_of_separate_inputs(
    steps: int, rows: int, kinds: int, seed: int
) -> None:
    torch.manual_seed(seed)
    layer = RecurrentLayer("gru", input_width=3, width=4).double()
    vectors = torch.randn(kinds, 3, dtype=torch.float64, requires_grad=True)
    index = torch.randint(kinds, (rows, steps))
    lengths = torch.randint(1, steps + 1, (rows,))
    shared = layer.encode_repeated(Padded(index, lengths), vectors)
    separate = layer.encode(Padded(vectors[index], lengths))
    torch.testing.assert_close(shared, separate)
    weights = [torch.randn_like(each) for each in separate]
    leaves = [*layer.parameters(), vectors]
    torch.testing.assert_close(
        torch.autograd.grad(shared, leaves, weights),
        torch.autograd.grad(separate, leaves, weights),
    )


@settings(deadline=None, max_examples=20)
@given(steps=st.integers(1, 4), rows=st.integers(1, 4), seed=st.integers(0, 99))
def test_single_steps_with_one_weight_gradient_have_the_outputs_and_gradients_of_autograd(
    steps: int, rows: int, seed: int
) -> None:
    """The input of a step is computed from the previous state, as with input feeding."""
    torch.manual_seed(seed)
    layer = RecurrentLayer("gru", input_width=3, width=4).double()
    inputs = torch.randn(rows, steps, 3, dtype=torch.float64, requires_grad=True)
    start = torch.randn(rows, 4, dtype=torch.float64, requires_grad=True)

    def run(step: LayerStep) -> Tensor:
        states = [start]
        for each in inputs.unbind(1):
            states.append(step(each + states[-1][:, :3].sin(), states[-1]))
        return torch.stack(states)

    fast, plain = run(layer.prepare_steps(inputs)), run(layer.step)
    torch.testing.assert_close(fast, plain)
    leaves, weights = [*layer.parameters(), inputs, start], torch.randn_like(plain)
    torch.testing.assert_close(
        torch.autograd.grad(fast, leaves, weights), torch.autograd.grad(plain, leaves, weights)
    )
