"""Runs a model on a batch and records the tensors at which a loss is differentiated.

The usual forward pass computes a recurrent layer over all steps in one operation, and attention in
a fused kernel. In that pass, hidden states and attention scores are not separate tensors of the
autograd graph, so no gradient can be measured at them. This module runs the same layers step by
step: while the model runs, `RecurrentLayer.step` and `MultiHeadAttention.trace` replace the fused
operations. The results are the same. The code of the models does not change.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from seqloom.analysis.gradient_flow import prediction_losses
from seqloom.core.batch import Batch
from seqloom.models.interface import Memory, State
from seqloom.models.recurrent import RecurrentDecoder, RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder
from seqloom.nn.key_value_cache import KeysValues
from seqloom.nn.multihead import AttentionTrace, MultiHeadAttention
from seqloom.nn.positions import PositionIds
from seqloom.nn.recurrent import RecurrentLayer


@dataclass
class RecordedLayer:
    """The hidden states of one layer, in the order in which the layer computes them.

    name:        for example "layer 1", or "layer 1 ←" for the backward direction
    width:       width of the hidden vector. The states of an LSTM are wider: [h; c]
    is_reversed: True if the layer reads the source from the last token to the first
    states:      one tensor (B, C) per step: the state after the step
    carried:     one tensor (B, C) per step: the state before the step. Only the recurrent cell
                 reads this tensor, so its gradient shows the effect of the recurrence alone. Empty
                 for Transformer layers

    C is the width of a state.
    """

    name: str
    width: int
    is_reversed: bool = False
    states: list[Tensor] = field(default_factory=list)
    carried: list[Tensor] = field(default_factory=list)


@dataclass
class RecordedAttention:
    """Cross-attention of one decoder layer, at every decoder step.

    steps:        for each decoder step, all intermediate results of attention, from the query to
                  the context. Each step has its own tensors of keys and values, so that their
                  gradients can be measured for each step separately
    query_inputs: one tensor (B, Dq) per decoder step: the vectors from which the queries are
                  computed, with width Dq
    """

    attention: MultiHeadAttention
    steps: list[AttentionTrace] = field(default_factory=list)
    query_inputs: list[Tensor] = field(default_factory=list)

    def attend(
        self, states: Tensor, source: Tensor, mask: Tensor | None, position_ids: PositionIds
    ) -> Tensor:
        """Attend from one decoder step to the source, and record all intermediate results.

        states (B, Dq), source (B, S, Dk) -> context (B, C)

        position_ids: position of the step
        """
        query_input = states.view_as(states)
        trace = self.attention.trace(query_input.unsqueeze(1), source, mask, position_ids)
        self.query_inputs.append(query_input)
        self.steps.append(trace)
        return trace.context.squeeze(1)


@dataclass(frozen=True)
class ForwardRecord:
    """The tensors of one forward pass.

    losses:    (B, T) loss -log p of every prediction, 0 at padding
    encoder:   layers of the encoder; empty if it is neither recurrent nor a Transformer
    decoder:   layers of the decoder; empty for a label decoder
    memory:    encoder output
    initial:   (B, L, C) initial state of a recurrent decoder; None for other decoders
    attention: cross-attention of each decoder layer that has it
    """

    losses: Tensor
    encoder: list[RecordedLayer]
    decoder: list[RecordedLayer]
    memory: Memory
    initial: Tensor | None
    attention: list[RecordedAttention]


def record_forward(model: Model, batch: Batch) -> ForwardRecord:
    """Run the model with teacher forcing, and record the tensors of the forward pass.

    Gradients must be enabled. The model must be in evaluation mode, so that there is no dropout.
    """
    assert not model.training, "the recorded pass needs a model in evaluation mode"
    with ExitStack() as stack:
        encoder = _record_encoder(model, stack)
        memory = model.encode(batch.source, batch.size)
    match model.decoder:
        case RecurrentDecoder():
            return _record_recurrent_decoder(model.decoder, batch, memory, encoder)
        case TransformerDecoder():
            return _record_transformer_decoder(model.decoder, batch, memory, encoder)
        case _:
            logits = model.decoder(batch.inputs.values, memory).logits()
            losses = prediction_losses(logits, batch.targets)
            return ForwardRecord(losses, encoder, [], memory, None, [])


def _record_encoder(model: Model, stack: ExitStack) -> list[RecordedLayer]:
    """Start recording the hidden states of each encoder layer.

    Returns one empty record per layer. The records are filled when the encoder runs. Recording ends
    when `stack` is closed.
    """
    match model.encoder:
        case RecurrentEncoder() as encoder:
            return _record_directions(encoder, stack)
        case TransformerEncoder() as encoder:
            return _record_outputs(encoder.layers, encoder.embedder.width, stack)
        case _:
            return []


def _record_directions(encoder: RecurrentEncoder, stack: ExitStack) -> list[RecordedLayer]:
    """Start recording the hidden states of each layer and direction of a recurrent encoder.

    Returns empty records. They are filled when the encoder runs. Recording ends when `stack` is
    closed.
    """
    has_both = bool(encoder.forward_layers) and bool(encoder.backward_layers)
    records = []
    for number in range(max(len(encoder.forward_layers), len(encoder.backward_layers))):
        for layers, arrow in ((encoder.forward_layers, "→"), (encoder.backward_layers, "←")):
            if not layers:
                continue
            name = f"layer {number + 1} {arrow}" if has_both else f"layer {number + 1}"
            record = RecordedLayer(name, layers[number].width, is_reversed=arrow == "←")
            stack.enter_context(_recording_steps(layers[number], record))
            stepwise = layers[number].encode_stepwise
            stack.enter_context(_replacing(layers[number], "encode", stepwise))
            records.append(record)
    return records


def _record_recurrent_decoder(
    decoder: RecurrentDecoder, batch: Batch, memory: Memory, encoder: list[RecordedLayer]
) -> ForwardRecord:
    tokens = batch.inputs.values  # (B, T)
    records = [
        RecordedLayer(f"layer {number}", layer.width)
        for number, layer in enumerate(decoder.layers, start=1)
    ]
    cross: list[RecordedAttention] = []
    with ExitStack() as stack:
        for layer, record in zip(decoder.layers, records, strict=True):
            stack.enter_context(_recording_steps(layer, record))
        if decoder.attention is not None:
            cross = [RecordedAttention(decoder.attention)]
            step_cross = _step_cross(cross[0], memory)
            stack.enter_context(_replacing(decoder.attention, "step_cross", step_cross))
        state = decoder.start(memory, tokens.shape[1])
        initial = _separate(state.moving.states)  # (B, L, C)
        state = replace(state, moving=replace(state.moving, states=initial))
        logits = torch.stack(list(_step_logits(decoder, tokens, state)), dim=1)  # (B, T, V)
    losses = prediction_losses(logits, batch.targets)
    return ForwardRecord(losses, encoder, records, memory, initial, cross)


def _step_cross(attended: RecordedAttention, memory: Memory) -> Callable[..., object]:
    """Return a function that computes cross-attention for one decoder step and records the step.

    The function replaces the method `MultiHeadAttention.step_cross`.
    """

    def step_cross(
        states: Tensor,
        keys_values: KeysValues,
        mask: Tensor | None,
        need_weights: bool,
        position: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        position_ids = 0 if position is None else position
        context = attended.attend(states, memory.states, mask, position_ids)
        return context, attended.steps[-1].weights.squeeze(2)  # (B, C), (B, H, S)

    return step_cross


def _step_logits(decoder: RecurrentDecoder, tokens: Tensor, state: State) -> Iterator[Tensor]:
    """Run the decoder step by step on the given tokens. Yields the logits (B, V) of each step."""
    for column in tokens.unbind(1):
        step = decoder.step(column, state)
        state = step.state
        yield step.logits


def _record_transformer_decoder(
    decoder: TransformerDecoder, batch: Batch, memory: Memory, encoder: list[RecordedLayer]
) -> ForwardRecord:
    cross: list[RecordedAttention] = []
    with ExitStack() as stack:
        records = _record_outputs(decoder.layers, decoder.embedder.width, stack)
        for layer in decoder.layers:
            if layer.cross_attention is not None:
                attended = RecordedAttention(layer.cross_attention)
                attend = _attend_by_step(attended, memory)
                stack.enter_context(_replacing(layer.cross_attention, "attend", attend))
                cross.append(attended)
        logits = decoder(batch.inputs.values, memory).logits()
    losses = prediction_losses(logits, batch.targets)
    return ForwardRecord(losses, encoder, records, memory, None, cross)


def _attend_by_step(attended: RecordedAttention, memory: Memory) -> Callable[..., Tensor]:
    """Return a function that computes attention position by position and records each position.

    The function replaces the method `MultiHeadAttention.attend`.
    """

    def attend(
        states: Tensor,
        keys_values: KeysValues,
        mask: Tensor | None = None,
        *,
        position_ids: PositionIds = 0,
    ) -> Tensor:
        contexts = [
            attended.attend(state, memory.states, mask, position_ids + position)
            for position, state in enumerate(states.unbind(1))
        ]
        return torch.stack(contexts, dim=1)  # (B, T, C)

    return attend


def _record_outputs(
    layers: Sequence[nn.Module], width: int, stack: ExitStack
) -> list[RecordedLayer]:
    """Start recording the output of each Transformer layer.

    Returns one empty record per layer. The records are filled when the layers run. Recording ends
    when `stack` is closed.
    """
    records = []
    for number, layer in enumerate(layers, start=1):
        record = RecordedLayer(f"layer {number}", width)

        def split(
            module: nn.Module, arguments: object, stream: Tensor, record: RecordedLayer = record
        ) -> Tensor:
            """Forward hook that records the output of a layer as N tensors, one per position.

            Returns a stack of these tensors. The model continues with this stack instead of
            `stream`, so that gradients reach the recorded tensors.

            stream: (B, N, D) output of the layer
            """
            record.states.extend(stream.unbind(1))
            return torch.stack(record.states, dim=1)

        stack.callback(layer.register_forward_hook(split).remove)
        records.append(record)
    return records


@contextmanager
def _recording_steps(layer: RecurrentLayer, record: RecordedLayer) -> Iterator[None]:
    """Record the states before and after every step of a layer, inside the `with` block."""
    run_step = layer.step

    def step(inputs: Tensor, state: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        carried = state.view_as(state)
        record.carried.append(carried)
        record.states.append(run_step(inputs, carried, weights))
        return record.states[-1]

    with _replacing(layer, "step", step):
        yield


@contextmanager
def _replacing(module: nn.Module, name: str, function: Callable[..., object]) -> Iterator[None]:
    """Replace a method of one module inside the `with` block.

    Other modules of the same class keep their own method.
    """
    setattr(module, name, function)
    try:
        yield
    finally:
        delattr(module, name)


def _separate(tensor: Tensor) -> Tensor:
    """Return a new tensor with the same values, which is a separate node of the autograd graph.

    The gradient at the new tensor covers only uses of the new tensor, not of the original one.
    """
    return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
