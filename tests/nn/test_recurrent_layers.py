"""Cells as their formulas, and sequences of unequal length read in either direction."""

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.core.batch import Padded
from seqloom.nn.recurrent import Cell, RecurrentLayer, reverse

CELLS: tuple[Cell, ...] = get_args(Cell)
every_cell = pytest.mark.parametrize("cell", CELLS)
calm = settings(deadline=None, max_examples=30)


def layer_of(cell: Cell) -> RecurrentLayer:
    torch.manual_seed(0)
    return RecurrentLayer(cell, input_width=3, width=4).double().requires_grad_(False)


def some_source(lengths: list[int], seed: int = 0, width: int = 3) -> Padded:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(len(lengths), max(lengths), width, generator=generator).double()
    return Padded(values, torch.tensor(lengths))


def written_out(layer: RecurrentLayer, x: Tensor, state: Tensor) -> Tensor:
    """The formulas at the head of nn/recurrent.py, with their biases."""
    w, u, b, c = layer.network.all_weights[0]
    h, cell = state[:, : layer.width], state[:, layer.width :]
    from_x, from_h = x @ w.T + b, h @ u.T + c
    match layer.cell:
        case "rnn":
            return torch.tanh(from_x + from_h)
        case "gru":
            (xr, xz, xn), (hr, hz, hn) = from_x.chunk(3, -1), from_h.chunk(3, -1)
            r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
            n = torch.tanh(xn + r * hn)
            return (1 - z) * n + z * h
        case "lstm":
            i, f, g, o = (from_x + from_h).chunk(4, -1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            return torch.cat((o.sigmoid() * cell.tanh(), cell), -1)


@every_cell
def test_a_cell_computes_its_formula(cell: Cell) -> None:
    layer, inputs = layer_of(cell), some_source([6, 6]).values
    state = torch.randn(2, layer.state_width).double()
    hidden, last = layer(inputs, state)
    for place, x in enumerate(inputs.unbind(1)):
        stepped = layer.step(x, state)
        state = written_out(layer, x, state)
        torch.testing.assert_close(stepped, state)
        torch.testing.assert_close(hidden[:, place], state[:, : layer.width])
    torch.testing.assert_close(last, state)


@every_cell
def test_the_last_state_is_that_of_the_last_real_position(cell: Cell) -> None:
    layer, source = layer_of(cell), some_source([5, 1, 3])
    hidden, last = layer.read(source)
    assert hidden.shape == (3, 5, 4)
    for row, length in enumerate(source.lengths.tolist()):
        zeros = torch.zeros(1, layer.state_width).double()
        alone, end = layer(source.values[row : row + 1, :length], zeros)
        torch.testing.assert_close(hidden[row, :length], alone[0])
        torch.testing.assert_close(last[row], end[0])
        torch.testing.assert_close(last[row, :4], hidden[row, length - 1])


@every_cell
def test_the_map_of_the_state_starts_orthogonal_gate_by_gate(cell: Cell) -> None:
    layer = RecurrentLayer(cell, 3, 4)
    for gate in layer.network.all_weights[0][1].detach().split(4):
        torch.testing.assert_close(gate @ gate.T, torch.eye(4), atol=1e-5, rtol=0)


@calm
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.booleans())
def test_reversing_twice_changes_nothing(lengths: list[int], vectors: bool) -> None:
    source = some_source(lengths)
    if not vectors:
        source = Padded(source.values[..., 0], source.lengths)
    twice = reverse(reverse(source))
    assert torch.equal(twice.values, source.values)
    assert torch.equal(twice.lengths, source.lengths)


@calm
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_a_row_is_reversed_up_to_its_own_end_and_the_padding_stays_right(
    lengths: list[int],
) -> None:
    source = some_source(lengths)
    back = reverse(source).values
    for row, length in enumerate(lengths):
        assert torch.equal(back[row, :length], source.values[row, :length].flip(0))
        assert torch.equal(back[row, length:], source.values[row, length:])


@every_cell
def test_reading_backwards_is_reading_the_reversed_sentence_forwards(cell: Cell) -> None:
    layer, source = layer_of(cell), some_source([4, 2])
    hidden, last = layer.read(reverse(source))
    for row, length in enumerate([4, 2]):
        sentence = source.values[row : row + 1, :length].flip(1)
        alone, end = layer.read(Padded(sentence, torch.tensor([length])))
        torch.testing.assert_close(hidden[row, :length], alone[0])
        torch.testing.assert_close(last[row], end[0])


@every_cell
def test_reading_in_turn_finds_the_same(cell: Cell) -> None:
    layer, source = layer_of(cell), some_source([5, 1, 3])
    for one, other in zip(layer.read(source), layer.read_in_turn(source), strict=True):
        torch.testing.assert_close(one, other)


@every_cell
def test_weight_dropout_takes_the_same_weights_from_every_position_of_a_pass(cell: Cell) -> None:
    """A pass at once and a pass in turn agree where they draw alike."""
    torch.manual_seed(0)
    inputs = some_source([5, 5]).values
    layer = RecurrentLayer(cell, 3, 4, weight_dropout=0.5).double()
    state = torch.randn(2, layer.state_width).double()
    torch.manual_seed(1)
    hidden, last = layer(inputs, state)
    torch.manual_seed(1)
    weights = layer.weights()
    assert 0 < int((weights[1] == 0).sum()) < weights[1].numel()
    for place, x in enumerate(inputs.unbind(1)):
        state = layer.step(x, state, weights)
        torch.testing.assert_close(hidden[:, place], state[:, : layer.width])
    torch.testing.assert_close(last, state)
    again, _ = layer(inputs, torch.zeros_like(state))
    assert not torch.allclose(again, layer(inputs, torch.zeros_like(state))[0])  # drawn anew
    layer.eval()
    torch.testing.assert_close(layer.weights()[1], layer.network.all_weights[0][1])


@every_cell
def test_a_gradient_reaches_what_weight_dropout_leaves(cell: Cell) -> None:
    layer = RecurrentLayer(cell, 3, 4, weight_dropout=0.5)
    torch.manual_seed(2)
    kept = layer.weights()[1] != 0
    torch.manual_seed(2)
    layer(some_source([6]).values.float(), torch.ones(1, layer.state_width))[0].sum().backward()
    gradient = layer.network.all_weights[0][1].grad
    assert gradient is not None
    assert torch.equal(gradient != 0, kept)


@every_cell
def test_reading_goes_without_the_same_weights_from_end_to_end(cell: Cell) -> None:
    layer, source = RecurrentLayer(cell, 3, 4, weight_dropout=0.5).double(), some_source([5, 2])
    torch.manual_seed(3)
    hidden, last = layer.read(source)
    torch.manual_seed(3)
    weights = layer.weights()
    for row, length in enumerate([5, 2]):
        state = torch.zeros(1, layer.state_width).double()
        for place in range(length):
            state = layer.step(source.values[row : row + 1, place], state, weights)
            torch.testing.assert_close(hidden[row, place], state[0, : layer.width])
        torch.testing.assert_close(last[row], state[0])


@calm
@given(
    steps=st.integers(1, 6), rows=st.integers(1, 4), seed=st.integers(0, 10**6), asked=st.booleans()
)
def test_a_gru_that_learns_finds_the_gradients_that_autograd_finds(
    steps: int, rows: int, seed: int, asked: bool
) -> None:
    torch.manual_seed(seed)
    layer = RecurrentLayer("gru", input_width=3, width=4).double()
    inputs = torch.randn(rows, steps, 3, dtype=torch.float64, requires_grad=asked)
    state = torch.randn(rows, 4, dtype=torch.float64, requires_grad=True)
    wanted = [*layer.parameters(), state, *([inputs] if asked else [])]
    hidden, last = layer(inputs, state)
    expected, expected_last = layer.network(inputs, state.unsqueeze(0))
    torch.testing.assert_close(hidden, expected)
    torch.testing.assert_close(last, expected_last.squeeze(0))
    weights = torch.randn_like(hidden)
    for one, other in zip(
        torch.autograd.grad((hidden * weights).sum() + last.square().sum(), wanted),
        torch.autograd.grad((expected * weights).sum() + expected_last.square().sum(), wanted),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
