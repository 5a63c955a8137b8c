"""The GRU with a hand-written gradient has the outputs and gradients of torch's GRU."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.core.batch import Padded
from seqloom.nn import recurrent
from seqloom.nn.fast import gru as fast_gru
from seqloom.nn.recurrent import Cell, LayerStep, RecurrentLayer


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


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@settings(deadline=None, max_examples=20)
@given(
    steps=st.integers(1, 4),
    unused_steps=st.integers(0, 2),
    rows=st.integers(1, 4),
    known_width=st.integers(0, 3),
    is_first_only=st.booleans(),
    seed=st.integers(0, 99),
)
def test_prepared_steps_have_the_outputs_and_gradients_of_plain_steps(
    cell: Cell,
    steps: int,
    unused_steps: int,
    rows: int,
    known_width: int,
    is_first_only: bool,
    seed: int,
) -> None:
    """The rest of a step's input is computed from the previous state, as with input feeding.

    is_first_only: only the first of the states is used, so the later steps get no gradient
    """
    torch.manual_seed(seed)
    layer = RecurrentLayer(cell, input_width=3, width=4).double()
    inputs = torch.randn(rows, steps + unused_steps, 3, dtype=torch.float64, requires_grad=True)
    start = torch.randn(rows, layer.state_width, dtype=torch.float64, requires_grad=True)

    def run(step: LayerStep, first: int) -> Tensor:
        """Run with the entries of the inputs from number `first` on."""
        states = [start]
        for each in inputs.unbind(1)[:steps]:
            rest = each[:, known_width:] + states[-1][:, known_width:3].sin()
            whole = torch.cat((each[:, :known_width], rest), -1)
            states.append(step(whole[:, first:], states[-1]))
        return torch.stack(states[:2] if is_first_only else states)

    prepared = run(layer.prepare_steps(inputs[:, :, :known_width]), known_width)
    plain = run(layer.step, 0)
    torch.testing.assert_close(prepared, plain)
    leaves, weights = [*layer.parameters(), inputs, start], torch.randn_like(plain)
    torch.testing.assert_close(
        torch.autograd.grad(prepared, leaves, weights), torch.autograd.grad(plain, leaves, weights)
    )


def test_gradients_of_prepared_steps_can_be_computed_repeatedly_and_for_some_steps_only() -> None:
    """One backward pass leaves nothing behind for the next."""
    layer = RecurrentLayer("gru", input_width=3, width=4).double()
    inputs = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)

    def run(step: LayerStep, first: int) -> list[Tensor]:
        states = [inputs.new_zeros(2, 4)]
        for each in inputs.unbind(1):
            states.append(step(each[:, first:], states[-1]))
        return states[1:]

    leaves = [*layer.parameters(), inputs]
    prepared, plain = run(layer.prepare_steps(inputs[:, :, :2]), 2), run(layer.step, 0)
    for step in (2, 0, 1):
        torch.testing.assert_close(
            torch.autograd.grad(prepared[step].sum(), leaves, retain_graph=True),
            torch.autograd.grad(plain[step].sum(), leaves, retain_graph=True),
        )
    torch.testing.assert_close(
        torch.autograd.grad(prepared[2].sum(), prepared[0]),
        torch.autograd.grad(plain[2].sum(), plain[0]),
    )


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_prepared_steps_drop_the_same_weights_at_all_positions(cell: Cell) -> None:
    layer = RecurrentLayer(cell, input_width=3, width=8, weight_dropout=0.5)
    inputs, state = torch.randn(2, 5, 3), torch.randn(2, layer.state_width)
    torch.manual_seed(1)
    expected, _ = layer(inputs, state)
    torch.manual_seed(1)
    step = layer.prepare_steps(inputs[:, :, :2])
    hidden = []
    for each in inputs.unbind(1):
        state = step(each[:, 2:], state)
        hidden.append(state[:, :8])
    torch.testing.assert_close(torch.stack(hidden, 1), expected)
