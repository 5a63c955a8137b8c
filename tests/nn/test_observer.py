"""Observers receive the values of a pass, and can replace them. Without one nothing changes."""

import threading

import pytest
import torch
from torch import Tensor, nn

from seqloom.nn.embedding import Embedder, LearnedLookup
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import AttentionInputs, Observer, observe, observing
from seqloom.nn.positions import Positions
from seqloom.nn.recurrent import RecurrentLayer
from seqloom.nn.transformer import Residual


class Collector(Observer):
    def __init__(self) -> None:
        self.names: list[str] = []
        self.attention: list[AttentionInputs] = []

    def observe(self, part: nn.Module, name: str, value: Tensor) -> Tensor:
        self.names.append(name)
        return value

    def attend(self, inputs: AttentionInputs) -> None:
        self.attention.append(inputs)


def test_layers_report_their_values_only_inside_the_with_block() -> None:
    embedder = Embedder(LearnedLookup(5, 4, 0.0, False), Positions(), None, 0.0)
    layer = RecurrentLayer("gru", 4, 4)
    collector, inner = Collector(), Collector()
    with observing(collector):
        with observing(inner):
            embedder(torch.tensor([[1, 2]]))
        layer.step(torch.zeros(1, 4), torch.zeros(1, 4))
    layer.step(torch.zeros(1, 4), torch.zeros(1, 4))
    assert inner.names == ["vector", "input"]
    assert collector.names == ["carried", "state"]


def test_an_error_ends_the_observation() -> None:
    collector = Collector()
    with pytest.raises(ZeroDivisionError), observing(collector):
        raise ZeroDivisionError
    observe(nn.Identity(), "value", torch.zeros(1))
    assert not collector.names


def test_an_observer_receives_nothing_from_other_threads() -> None:
    layer, collector = RecurrentLayer("gru", 4, 4), Collector()
    with observing(collector):
        thread = threading.Thread(
            target=lambda: layer.step(torch.zeros(1, 4), torch.zeros(1, 4)), daemon=True
        )
        thread.start()
        thread.join()
    assert not collector.names


def test_the_computation_continues_with_the_value_of_the_observer() -> None:
    class Patch(Observer):
        def observe(self, part: nn.Module, name: str, value: Tensor) -> Tensor:
            return torch.ones_like(value) if name == "state" else value

        def attend(self, inputs: AttentionInputs) -> Tensor:
            return torch.full_like(inputs.states, 2.0)

    layer, attention = RecurrentLayer("lstm", 4, 4), MultiHeadAttention(4, 2)
    states = torch.randn(1, 3, 4)
    with observing(Patch()):
        assert bool((layer.step(torch.zeros(1, 4), torch.zeros(1, 8)) == 1).all())
        assert bool((attention.attend_self(states) == 2).all())
        assert bool((attention(states).context == 2).all())


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_reported_inputs_give_the_context_of_each_query(is_causal: bool) -> None:
    torch.manual_seed(0)
    attention, collector = MultiHeadAttention(8, 2, rotary=True).double(), Collector()
    states = torch.randn(2, 4, 8, dtype=torch.float64)
    mask = None if is_causal else torch.rand(2, 1, 4, 4) < 0.5
    mask = mask if mask is None else mask | torch.eye(4, dtype=torch.bool)
    expected = attention.attend_self(states, mask=mask, is_causal=is_causal)
    with observing(collector):
        context = attention.attend_self(states, mask=mask, is_causal=is_causal)
    assert torch.equal(context, expected)
    if mask is not None:
        assert not torch.allclose(attention.attend_self(states), expected)
    [inputs] = collector.attention
    single = [inputs.only(step).trace().context for step in range(4)]
    torch.testing.assert_close(torch.cat(single, dim=1), expected)
    assert torch.equal(inputs.only(-1).trace().context, single[-1])


def test_compiled_code_reports_nothing() -> None:
    residual, collector = Residual(4, "pre", 0.0), Collector()
    compiled = torch.compile(residual, backend="eager", fullgraph=True)
    with observing(collector):
        compiled(torch.zeros(1, 4), torch.sin)
        assert not collector.names
        residual(torch.zeros(1, 4), torch.sin)
    assert collector.names == ["stream"]
