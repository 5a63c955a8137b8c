"""Sublayers and the ways around them."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.attention import DotScore
from seqloom.nn.cache import KeyValueCache
from seqloom.nn.multihead import AttentionPlan, MultiHeadAttention
from seqloom.nn.transformer import Across, DecoderLayer, EncoderLayer, FeedForward, Norm, Residual

WIDTH = 8
NORMS: list[Norm] = ["pre", "post"]
every_norm = pytest.mark.parametrize("norm", NORMS)


def attention_of() -> MultiHeadAttention:
    plan = AttentionPlan(
        query_width=WIDTH,
        key_width=WIDTH,
        width=WIDTH,
        heads=2,
        projection="linear",
        learned_values=True,
        merged_width=WIDTH,
    )
    return MultiHeadAttention(plan, DotScore("sqrt", WIDTH // 2))


def settle(layer: nn.Module) -> None:
    """Weights that make every path matter, norms included."""
    torch.manual_seed(0)
    layer.double().eval().requires_grad_(False)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)


@every_norm
def test_the_way_around_a_sublayer_is_as_in_the_docstring(norm: Norm) -> None:
    residual, stream = Residual(WIDTH, norm, dropout=0.0), torch.randn(2, 3, WIDTH).double()
    settle(residual)

    def sublayer(states: Tensor) -> Tensor:
        return states.square() + 1

    if norm == "pre":
        expected = stream + sublayer(residual.norm(stream))
    else:
        expected = residual.norm(stream + sublayer(stream))
    torch.testing.assert_close(residual(stream, sublayer), expected)


@every_norm
def test_where_there_is_a_gap_nothing_goes_around_a_sublayer(norm: Norm) -> None:
    residual, stream = Residual(WIDTH, norm, 0.0, gap=True), torch.randn(2, 3, WIDTH).double()
    settle(residual)
    zero = residual(stream, torch.zeros_like)
    torch.testing.assert_close(zero, residual(torch.randn_like(stream), torch.zeros_like))
    plain = Residual(WIDTH, norm, 0.0).double()
    plain.load_state_dict(residual.state_dict())
    around = plain(stream, torch.square) - residual(stream, torch.square)
    if norm == "pre":
        torch.testing.assert_close(around, stream)


def test_a_feed_forward_network_sees_each_position_alone() -> None:
    network, states = FeedForward(WIDTH, 20, "relu", dropout=0.0), torch.randn(2, 3, WIDTH).double()
    settle(network)
    hidden = (states @ network.widen.weight.T + network.widen.bias).clamp(min=0)
    expected = hidden @ network.narrow.weight.T + network.narrow.bias
    torch.testing.assert_close(network(states), expected)
    smooth = FeedForward(WIDTH, 20, "gelu", dropout=0.0).double()
    smooth.load_state_dict(network.state_dict())
    expected = smooth.narrow(F.gelu(smooth.widen(states)))
    torch.testing.assert_close(smooth(states), expected)


@every_norm
def test_an_encoder_layer_is_attention_then_feed_forward(norm: Norm) -> None:
    layer = EncoderLayer(attention_of(), FeedForward(WIDTH, 12, "relu", 0.0), norm, 0.0)
    settle(layer)
    stream = torch.randn(2, 4, WIDTH).double()
    mask = torch.ones(2, 1, 1, 4, dtype=torch.bool)
    looked = layer.around_attention(
        stream,
        lambda states: layer.attention.look(states, layer.attention.keys_values(states), mask)[0],
    )
    expected = layer.around_feedforward(looked, layer.feedforward)
    torch.testing.assert_close(layer(stream, mask), expected)


@every_norm
@pytest.mark.parametrize("crosses", [False, True])
def test_a_decoder_layer_steps_as_it_teaches(norm: Norm, crosses: bool) -> None:
    cross = attention_of() if crosses else None
    layer = DecoderLayer(attention_of(), cross, FeedForward(WIDTH, 12, "relu", 0.0), norm, 0.0)
    settle(layer)
    stream, source = torch.randn(2, 5, WIDTH).double(), torch.randn(2, 3, WIDTH).double()
    mask = torch.tensor([[True, True, True], [True, False, False]])[:, None, None]
    memory = None if cross is None else cross.keys_values(source)
    taught, cache = layer(stream, memory, mask), KeyValueCache(5)
    across = None if memory is None else Across(memory, mask, need_attention=True)
    for place, here in enumerate(stream.unbind(1)):
        stepped, weights = layer.step(here, cache, layer.attention.joined(anew=True), across)
        torch.testing.assert_close(stepped, taught[:, place])
        assert (weights is None) == (not crosses)
        assert weights is None or weights.shape == (2, 2, 3)
