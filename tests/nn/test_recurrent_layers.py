"""Cells compute their formulas, and sequences of unequal length are encoded in either direction."""

from typing import get_args
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.core.batch import Padded
from seqloom.nn import recurrent
from seqloom.nn.fast.dispatch import cudnn_would_use_float16
from seqloom.nn.recurrent import Cell, RecurrentLayer, reverse

CELLS: tuple[Cell, ...] = get_args(Cell)
every_cell = pytest.mark.parametrize("cell", CELLS)
few_examples = settings(deadline=None, max_examples=30)


def build_layer(cell: Cell) -> RecurrentLayer:
    torch.manual_seed(0)
    return RecurrentLayer(cell, input_width=3, width=4).double().requires_grad_(False)


def random_source(lengths: list[int], seed: int = 0, width: int = 3) -> Padded:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(len(lengths), max(lengths), width, generator=generator).double()
    return Padded(values, torch.tensor(lengths))


def by_formula(layer: RecurrentLayer, x: Tensor, state: Tensor) -> Tensor:
    """The formulas in the docstring of nn/recurrent.py, with their biases."""
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
@pytest.mark.parametrize("weight_dropout", [0.0, 0.5])
def test_no_layer_runs_in_float16(
    cell: Cell, weight_dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With autocast in bf16, torch would run the layers of cuDNN in float16."""
    layer = RecurrentLayer(cell, 3, 4, weight_dropout)
    inputs, state = torch.randn(2, 5, 3), torch.randn(2, layer.state_width)
    torch.manual_seed(1)
    expected = layer(inputs, state)
    monkeypatch.setattr(recurrent, "cudnn_would_use_float16", autocast_is_enabled)
    with torch.autocast("cpu", torch.bfloat16):
        torch.manual_seed(1)
        actual = layer(inputs.bfloat16().float(), state)
        torch.manual_seed(1)
        from_bf16 = layer(inputs.bfloat16(), state.bfloat16())
    assert [part.dtype for part in (*actual, *from_bf16)] == [torch.float32] * 4
    for first, second in zip(actual, expected, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=0.02)


def autocast_is_enabled(inputs: Tensor) -> bool:
    return torch.is_autocast_enabled("cpu")


def test_when_cudnn_would_use_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu, on_cpu = Mock(is_cuda=True), Mock(is_cuda=False)
    assert not cudnn_would_use_float16(on_gpu)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
    for dtype in (torch.float16, torch.bfloat16):
        monkeypatch.setattr(torch, "get_autocast_dtype", lambda device, dtype=dtype: dtype)
        assert cudnn_would_use_float16(on_gpu) == (dtype == torch.bfloat16)
        assert not cudnn_would_use_float16(on_cpu)


@every_cell
def test_a_cell_computes_its_formula(cell: Cell) -> None:
    layer, inputs = build_layer(cell), random_source([6, 6]).values
    state = torch.randn(2, layer.state_width).double()
    hidden, last = layer(inputs, state)
    for t, x in enumerate(inputs.unbind(1)):
        stepped = layer.step(x, state)
        state = by_formula(layer, x, state)
        torch.testing.assert_close(stepped, state)
        torch.testing.assert_close(hidden[:, t], state[:, : layer.width])
    torch.testing.assert_close(last, state)


@every_cell
def test_the_last_state_is_that_of_the_last_real_position(cell: Cell) -> None:
    layer, source = build_layer(cell), random_source([5, 1, 3])
    hidden, last = layer.encode(source)
    assert hidden.shape == (3, 5, 4)
    for row, length in enumerate(source.lengths.tolist()):
        zeros = torch.zeros(1, layer.state_width).double()
        single, end = layer(source.values[row : row + 1, :length], zeros)
        torch.testing.assert_close(hidden[row, :length], single[0])
        torch.testing.assert_close(last[row], end[0])
        torch.testing.assert_close(last[row, :4], hidden[row, length - 1])


@every_cell
def test_the_state_matrix_of_every_gate_is_orthogonal_at_first(cell: Cell) -> None:
    layer = RecurrentLayer(cell, 3, 4)
    for gate in layer.network.all_weights[0][1].detach().split(4):
        torch.testing.assert_close(gate @ gate.T, torch.eye(4), atol=1e-5, rtol=0)


@few_examples
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.booleans())
def test_reversing_twice_changes_nothing(lengths: list[int], vectors: bool) -> None:
    source = random_source(lengths)
    if not vectors:
        source = Padded(source.values[..., 0], source.lengths)
    twice = reverse(reverse(source))
    assert torch.equal(twice.values, source.values)
    assert torch.equal(twice.lengths, source.lengths)


@few_examples
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_a_row_is_reversed_up_to_its_end_and_the_padding_stays_on_the_right(
    lengths: list[int],
) -> None:
    source = random_source(lengths)
    reversed_values = reverse(source).values
    for row, length in enumerate(lengths):
        assert torch.equal(reversed_values[row, :length], source.values[row, :length].flip(0))
        assert torch.equal(reversed_values[row, length:], source.values[row, length:])


@every_cell
def test_encoding_backwards_is_encoding_the_reversed_sentence_forwards(cell: Cell) -> None:
    layer, source = build_layer(cell), random_source([4, 2])
    hidden, last = layer.encode(reverse(source))
    for row, length in enumerate([4, 2]):
        sentence = source.values[row : row + 1, :length].flip(1)
        single, end = layer.encode(Padded(sentence, torch.tensor([length])))
        torch.testing.assert_close(hidden[row, :length], single[0])
        torch.testing.assert_close(last[row], end[0])


@every_cell
def test_encoding_stepwise_equals_encoding_at_once(cell: Cell) -> None:
    layer, source = build_layer(cell), random_source([5, 1, 3])
    for at_once, stepwise in zip(layer.encode(source), layer.encode_stepwise(source), strict=True):
        torch.testing.assert_close(at_once, stepwise)


@every_cell
def test_weight_dropout_drops_the_same_weights_at_every_position(cell: Cell) -> None:
    """With the same seed, a pass over the sequence and single steps agree."""
    torch.manual_seed(0)
    inputs = random_source([5, 5]).values
    layer = RecurrentLayer(cell, 3, 4, weight_dropout=0.5).double()
    state = torch.randn(2, layer.state_width).double()
    torch.manual_seed(1)
    hidden, last = layer(inputs, state)
    torch.manual_seed(1)
    weights = layer.weights()
    assert 0 < int((weights[1] == 0).sum()) < weights[1].numel()
    for t, x in enumerate(inputs.unbind(1)):
        state = layer.step(x, state, weights)
        torch.testing.assert_close(hidden[:, t], state[:, : layer.width])
    torch.testing.assert_close(last, state)
    again, _ = layer(inputs, torch.zeros_like(state))
    assert not torch.allclose(
        again, layer(inputs, torch.zeros_like(state))[0]
    )  # each pass draws a new mask
    layer.eval()
    torch.testing.assert_close(layer.weights()[1], layer.network.all_weights[0][1])


@every_cell
def test_weights_that_weight_dropout_keeps_get_a_gradient(cell: Cell) -> None:
    layer = RecurrentLayer(cell, 3, 4, weight_dropout=0.5)
    torch.manual_seed(2)
    kept = layer.weights()[1] != 0
    torch.manual_seed(2)
    layer(random_source([6]).values.float(), torch.ones(1, layer.state_width))[0].sum().backward()
    gradient = layer.network.all_weights[0][1].grad
    assert gradient is not None
    assert torch.equal(gradient != 0, kept)


@every_cell
def test_encoding_drops_the_same_weights_at_every_position(cell: Cell) -> None:
    layer, source = RecurrentLayer(cell, 3, 4, weight_dropout=0.5).double(), random_source([5, 2])
    torch.manual_seed(3)
    hidden, last = layer.encode(source)
    torch.manual_seed(3)
    weights = layer.weights()
    for row, length in enumerate([5, 2]):
        state = torch.zeros(1, layer.state_width).double()
        for s in range(length):
            state = layer.step(source.values[row : row + 1, s], state, weights)
            torch.testing.assert_close(hidden[row, s], state[0, : layer.width])
        torch.testing.assert_close(last[row], state[0])
