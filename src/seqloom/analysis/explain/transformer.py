"""Traces one step of a Transformer decoder.

All layers run over all positions up to the step. The trace contains the input of the step, the
values of the selected layer, and the output of the step.
"""

import torch
from torch import Tensor

from seqloom.analysis.explain.step_trace import (
    AttentionSymbols,
    StepTrace,
    trace_attention,
    trace_input,
    trace_output,
)
from seqloom.models.transformer import TransformerDecoder
from seqloom.nn.transformer import DecoderLayer, FeedForward, Residual


def trace_transformer(decoder: TransformerDecoder, trace: StepTrace) -> Tensor:
    """Run one decoder step and add its intermediate values to the trace.

    Returns the probabilities of the next token: (V,)
    """
    trace.begin_section("input")
    trace_input(decoder.embedder, trace)
    stream = decoder.embedder(trace.tokens)  # (1, T, D)
    for number, layer in enumerate(decoder.layers):
        if number == trace.layer:
            stream = _trace_layer(layer, stream, trace)
            continue
        stream = layer(stream, trace.memory.states, trace.source_mask)
    above = len(decoder.layers) - 1 - trace.layer
    last = "x‴" if above == 0 else f"x‴ after {above} more layer{'s' if above > 1 else ''}"
    has_norm = not isinstance(decoder.norm, torch.nn.Identity)
    features = decoder.norm(stream[:, -1])
    return trace_output(decoder, features, f"norm({last})" if has_norm else last, trace)


def _trace_layer(layer: DecoderLayer, stream: Tensor, trace: StepTrace) -> Tensor:
    """Run one layer over all positions: (1, T, D) -> (1, T, D)

    Adds the intermediate values at the last position to the trace.
    """
    prefix, context = f"layer {trace.layer + 1}", trace.current("a")
    trace.begin_section(f"{prefix}: self-attention")
    origin = (
        f" = {trace.current('x')}" if trace.layer == 0 else f", the output of layer {trace.layer}"
    )
    trace.add("stream", f"x{origin}", stream[0, -1])
    stream = layer.attention_residual(stream, lambda states: _self_attention(layer, states, trace))
    formula = _residual_formula(layer.attention_residual, "x", context)
    trace.add("stream", f"x′ = {formula}", stream[0, -1])
    cross, around = layer.cross_attention, layer.cross_attention_residual
    symbol = "x′"
    if cross is not None and around is not None:
        trace.begin_section(f"{prefix}: cross-attention")
        stream = around(stream, lambda states: _cross_attention(layer, states, trace))
        trace.add("stream", f"x″ = {_residual_formula(around, 'x′', context)}", stream[0, -1])
        symbol = "x″"
    trace.begin_section(f"{prefix}: feed-forward")
    stream = layer.feedforward_residual(stream, layer.feedforward)
    inner = _feedforward_formula(
        layer.feedforward, _sublayer_input(layer.feedforward_residual, symbol)
    )
    formula = _residual_formula(layer.feedforward_residual, symbol, inner)
    trace.add("stream", f"x‴ = {formula}", stream[0, -1])
    return stream


def _self_attention(layer: DecoderLayer, states: Tensor, trace: StepTrace) -> Tensor:
    attention, last = layer.attention, trace.step - 1
    mask = torch.ones(1, 1, 1, trace.step, dtype=torch.bool, device=states.device)
    attended = attention.trace(states[:, -1:], states, mask, position_ids=last)
    symbol = _sublayer_input(layer.attention_residual, "x")
    trace_attention(
        attention, attended, AttentionSymbols(symbol, symbol, trace.labels.target), trace
    )
    return attention.attend_self(states, is_causal=True)


def _cross_attention(layer: DecoderLayer, states: Tensor, trace: StepTrace) -> Tensor:
    attention, source = layer.cross_attention, trace.memory.states
    assert attention is not None
    assert layer.cross_attention_residual is not None
    attended = attention.trace(
        states[:, -1:], source, trace.source_mask, position_ids=trace.step - 1
    )
    query = _sublayer_input(layer.cross_attention_residual, "x′")
    trace_attention(attention, attended, AttentionSymbols(query, "h", trace.labels.source), trace)
    return attention.attend(states, attention.project_keys_values(source), trace.source_mask)


def _sublayer_input(residual: Residual, stream: str) -> str:
    return f"norm({stream})" if residual.pre_norm else stream


def _residual_formula(residual: Residual, stream: str, inner: str) -> str:
    return f"{stream} + {inner}" if residual.pre_norm else f"norm({stream} + {inner})"


def _feedforward_formula(feedforward: FeedForward, inputs: str) -> str:
    return f"W₂ {feedforward.activation}(W₁ {inputs} + b₁) + b₂"
