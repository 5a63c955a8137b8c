"""Transformer layers: residual connections, feed-forward networks, encoder and decoder layers."""

from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn import transformer
from seqloom.nn.fast.dispatch import can_fuse_relu, find_triton
from seqloom.nn.fast.linear import linear_relu
from seqloom.nn.fast.multihead import joined_projections
from seqloom.nn.key_value_cache import KeyValueCache
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.transformer import (
    CrossAttentionInput,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Norm,
    Residual,
)

WIDTH = 8
NORMS: list[Norm] = ["pre", "post"]
every_norm = pytest.mark.parametrize("norm", NORMS)


def randomise(layer: nn.Module) -> None:
    """Large weights, so that every path matters, including the norms."""
    torch.manual_seed(0)
    layer.double().eval().requires_grad_(False)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)


@every_norm
def test_a_residual_connection_equals_its_formula(norm: Norm) -> None:
    residual, stream = Residual(WIDTH, norm, dropout=0.0), torch.randn(2, 3, WIDTH).double()
    randomise(residual)

    def sublayer(states: Tensor) -> Tensor:
        return states.square() + 1

    if norm == "pre":
        expected = stream + sublayer(residual.norm(stream))
    else:
        expected = residual.norm(stream + sublayer(stream))
    torch.testing.assert_close(residual(stream, sublayer), expected)


@every_norm
def test_without_a_skip_connection_only_the_output_of_the_sublayer_is_left(norm: Norm) -> None:
    residual, stream = Residual(WIDTH, norm, 0.0, skip=False), torch.randn(2, 3, WIDTH).double()
    randomise(residual)
    zero = residual(stream, torch.zeros_like)
    torch.testing.assert_close(zero, residual(torch.randn_like(stream), torch.zeros_like))
    plain = Residual(WIDTH, norm, 0.0).double()
    plain.load_state_dict(residual.state_dict())
    difference = plain(stream, torch.square) - residual(stream, torch.square)
    if norm == "pre":
        torch.testing.assert_close(difference, stream)


def test_a_feed_forward_network_equals_its_formula_at_each_position() -> None:
    network, states = FeedForward(WIDTH, 20, "relu", dropout=0.0), torch.randn(2, 3, WIDTH).double()
    randomise(network)
    hidden = (states @ network.widen.weight.T + network.widen.bias).clamp(min=0)
    expected = hidden @ network.narrow.weight.T + network.narrow.bias
    torch.testing.assert_close(network(states), expected)
    smooth = FeedForward(WIDTH, 20, "gelu", dropout=0.0).double()
    smooth.load_state_dict(network.state_dict())
    expected = smooth.narrow(F.gelu(smooth.widen(states)))
    torch.testing.assert_close(smooth(states), expected)


@every_norm
def test_an_encoder_layer_is_attention_then_feed_forward(norm: Norm) -> None:
    attention = MultiHeadAttention(WIDTH, heads=2)
    layer = EncoderLayer(attention, FeedForward(WIDTH, 12, "relu", 0.0), norm, 0.0)
    randomise(layer)
    stream = torch.randn(2, 4, WIDTH).double()
    mask = torch.ones(2, 1, 1, 4, dtype=torch.bool)
    attended = layer.attention_residual(stream, lambda states: attention(states, mask=mask).context)
    expected = layer.feedforward_residual(attended, layer.feedforward)
    torch.testing.assert_close(layer(stream, mask), expected)


@every_norm
@pytest.mark.parametrize("has_source", [False, True])
def test_steps_of_a_decoder_layer_equal_all_positions_at_once(norm: Norm, has_source: bool) -> None:
    attention = MultiHeadAttention(WIDTH, heads=2)
    cross = MultiHeadAttention(WIDTH, heads=2) if has_source else None
    layer = DecoderLayer(attention, cross, FeedForward(WIDTH, 12, "relu", 0.0), norm, 0.0)
    randomise(layer)
    stream, source = torch.randn(2, 5, WIDTH).double(), torch.randn(2, 3, WIDTH).double()
    mask = torch.tensor([[True, True, True], [True, False, False]])[:, None, None]
    memory = None if cross is None else cross.project_keys_values(source)
    expected, cache = layer(stream, source, mask), KeyValueCache(5)
    cross_input = None if memory is None else CrossAttentionInput(memory, mask, need_attention=True)
    projections = joined_projections(attention, static=True)
    for t, position in enumerate(stream.unbind(1)):
        output, weights = layer.step(position, cache, projections, cross_input)
        torch.testing.assert_close(output, expected[:, t])
        assert (weights is None) == (not has_source)
        assert weights is None or weights.shape == (2, 2, 3)


def test_a_feed_forward_network_with_fused_relu_computes_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a GPU, one kernel computes the first linear layer and ReLU."""
    feedforward, states = FeedForward(WIDTH, 20, "relu", 0.0), torch.randn(2, 3, WIDTH).double()
    randomise(feedforward)
    expected = feedforward(states)
    calls: list[Tensor] = []

    def fused(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        calls.append(rows)
        return linear_relu(rows, weight, bias)

    monkeypatch.setattr(transformer, "can_fuse_relu", lambda rows, weight: True)
    monkeypatch.setattr(transformer, "linear_relu", fused)
    torch.testing.assert_close(feedforward(states), expected)
    assert len(calls) == 1
    for activation in ("gelu", "silu"):
        other = FeedForward(WIDTH, 20, activation, 0.0)
        other(states.float())
    assert len(calls) == 1


def test_relu_is_fused_only_without_a_gradient_and_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weight = nn.Parameter(torch.zeros(4, 3))
    on_gpu, on_cpu = (Mock(is_cuda=is_cuda, requires_grad=False) for is_cuda in (True, False))
    assert not can_fuse_relu(on_gpu, weight)
    with torch.no_grad():
        assert can_fuse_relu(on_gpu, weight)
        assert not can_fuse_relu(on_cpu, weight)
        monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
        assert not can_fuse_relu(on_gpu, weight)


@pytest.mark.parametrize("compiler", ["gcc", "clang", "my-cc", None])
@pytest.mark.parametrize("is_installed", [True, False])
@pytest.mark.parametrize("header", ["Python.h", "other.h"])
def test_kernels_need_triton_a_c_compiler_and_the_header_of_python(
    compiler: str | None,
    is_installed: bool,
    header: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / header).touch()
    folders = {"posix_local": str(tmp_path / "none"), "posix_prefix": str(tmp_path)}
    monkeypatch.setattr("sysconfig.get_default_scheme", lambda: "posix_local")
    monkeypatch.setattr("sysconfig.get_paths", lambda scheme: {"include": folders[scheme]})
    monkeypatch.setenv("CC", "my-cc")
    monkeypatch.setattr("shutil.which", lambda name: name if name == compiler else None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if is_installed else None)
    find_triton.cache_clear()
    try:
        has_header = header == "Python.h"
        assert find_triton() == (is_installed and compiler is not None and has_header)
    finally:
        find_triton.cache_clear()
