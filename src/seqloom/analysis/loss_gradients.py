"""Gradients of the training loss at hidden states, inside attention, and at the weights.

    L = Σ_t -log p(y_t | y_<t, source)         the cross-entropy, without label smoothing

The gradient at a hidden state is the total gradient of backpropagation through time: it includes
the paths through all later steps. The state s_t of a recurrent decoder layer influences the loss
on three paths, and its gradient is their exact sum:

    ∂L/∂s_t = output + recurrence + query

    output      through the readout and through higher layers at the same step
    recurrence  ∂L/∂s_{t+1} · ∂s_{t+1}/∂s_t, through the cell of the next step
    query       ∂L/∂q · ∂q/∂s_t, through the attention query that is computed from s_t
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.analysis.forward_record import (
    ForwardRecord,
    RecordedAttention,
    RecordedLayer,
    record_forward,
)
from seqloom.analysis.gradient_flow import check_no_ensemble, gradients_at, select_step
from seqloom.core.batch import Batch, Padded
from seqloom.models.recurrent import RecurrentDecoder
from seqloom.models.seq2seq import Model
from seqloom.nn.multihead import AttentionTrace, MultiHeadAttention
from seqloom.nn.recurrent import reverse


@dataclass(frozen=True)
class StateGradients:
    """Gradients at the hidden states of one layer.

    name:  for example "layer 1", or "layer 1 ←" for the backward direction
    width: width of the hidden vector h
    total: (B, N, C) gradient at each of the N states
    parts: terms whose sum is `total`, by the path of the gradient: "output", "recurrence" and
           "query". Only the decoder layer that computes the attention queries has a "query" term.
           Empty for Transformer layers

    C is `width`. For an LSTM, C is 2 · `width`, because a state consists of h and the cell vector.
    A recurrent decoder layer has an initial state and a state after each step. Other layers have
    one state per token.
    """

    name: str
    width: int
    total: Tensor
    parts: Mapping[str, Tensor]


@dataclass(frozen=True)
class AttentionGradients:
    """Gradients inside the cross-attention of one decoder layer.

    attention: the attention module
    forward:   queries, keys, scores, weights, values and context of the forward pass
    context:   (B, T, C)        ∂L/∂a, at the context vector a of each decoder step
    read:      (B, H, T, Dv)    gradient at the context vector of each head
    weights:   (B, H, T, S)     ∂L/∂α
    scores:    (B, H, T, S)     ∂L/∂e; zero if attention selects one key
    queries:   (B, H, T, Dq)    ∂L/∂q; zero if attention selects one key
    keys:      (B, H, T, S, Dk) the part of ∂L/∂k that comes from each decoder step. The gradient
               at the keys is the sum over T. Zero if attention selects one key
    values:    (B, H, T, S, Dv) the part of ∂L/∂v that comes from each decoder step

    The widths of queries, keys and values of one head are Dq, Dk and Dv.
    """

    attention: MultiHeadAttention
    forward: AttentionTrace
    context: Tensor
    read: Tensor
    weights: Tensor
    scores: Tensor
    queries: Tensor
    keys: Tensor
    values: Tensor

    @property
    def is_hard(self) -> bool:
        """True if attention selects one key, so that scores, queries and keys get no gradient."""
        return self.attention.selection != "softmax"


@dataclass(frozen=True)
class LossGradients:
    """Gradients of the loss of a batch.

    losses:     (B, T) loss of every differentiated prediction; 0 for all others
    encoder:    gradients at the hidden states h of each encoder layer
    decoder:    gradients at the hidden states s of each decoder layer
    memory:     (B, S, D) gradient at the encoder output
    attention:  gradients inside cross-attention, for each decoder layer that has it
    parameters: gradient at each parameter, by its name in the model. Tied parameters occur once
    """

    losses: Tensor
    encoder: tuple[StateGradients, ...]
    decoder: tuple[StateGradients, ...]
    memory: Tensor
    attention: tuple[AttentionGradients, ...]
    parameters: Mapping[str, Tensor]


def measure_loss_gradients(model: Model, batch: Batch, step: int | None = None) -> LossGradients:
    """Compute the gradients of the training loss at hidden states, in attention and at parameters.

    step: differentiate only the loss of this prediction, counted from 1. For rows with fewer
          predictions the loss is 0. Default: differentiate the losses of all predictions.

    The parameters and their `grad` do not change.
    """
    check_no_ensemble(model)
    with torch.enable_grad(), _differentiating_parameters(model):
        record = record_forward(model, batch)
        losses = record.losses if step is None else select_step(record.losses, step)
        return _differentiate(model, batch, record, losses)


@contextmanager
def _differentiating_parameters(model: Model) -> Iterator[None]:
    """Make every parameter require a gradient inside the `with` block.

    The parameters of a model that is loaded for inference require no gradient. After the block,
    `requires_grad` has its old value for every parameter.
    """
    frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    for parameter in frozen:
        parameter.requires_grad_(True)
    try:
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(False)


class _Gradients:
    """The gradients of one loss, computed in one backward pass and looked up by tensor."""

    def __init__(self, loss: Tensor, tensors: Sequence[Tensor]) -> None:
        computed = gradients_at(loss, tensors)
        self._by_tensor = {id(t): gradient for t, gradient in zip(tensors, computed, strict=True)}

    def __getitem__(self, tensor: Tensor) -> Tensor:
        return self._by_tensor[id(tensor)]

    def stack(self, tensors: Sequence[Tensor], dim: int = 1) -> Tensor:
        return torch.stack([self[tensor] for tensor in tensors], dim=dim)


def _differentiate(
    model: Model, batch: Batch, record: ForwardRecord, losses: Tensor
) -> LossGradients:
    parameters = dict(model.named_parameters())
    gradients = _Gradients(losses.sum(), [*_recorded_tensors(record), *parameters.values()])
    encoder = [_encoder_states(layer, gradients, batch) for layer in record.encoder]
    return LossGradients(
        losses=losses.detach(),
        encoder=tuple(encoder),
        decoder=tuple(_decoder_states(model, record, gradients)),
        memory=gradients[record.memory.states],
        attention=tuple(_attention(attended, gradients) for attended in record.attention),
        parameters={name: gradients[parameter] for name, parameter in parameters.items()},
    )


def _recorded_tensors(record: ForwardRecord) -> Iterator[Tensor]:
    yield record.memory.states
    if record.initial is not None:
        yield record.initial
    for layer in (*record.encoder, *record.decoder):
        yield from (*layer.states, *layer.carried)
    for attended in record.attention:
        yield from attended.query_inputs
        for trace in attended.steps:
            yield from (trace.queries, trace.keys, trace.scores, trace.weights)
            yield from (trace.values, trace.read, trace.context)


def _encoder_states(layer: RecordedLayer, gradients: _Gradients, batch: Batch) -> StateGradients:
    total = gradients.stack(layer.states)  # (B, S, C)
    parts: dict[str, Tensor] = {}
    if layer.carried:
        # The cell of step t reads the state after step t - 1. No cell reads the last state.
        carried = gradients.stack(layer.carried)
        recurrence = torch.cat((carried[:, 1:], torch.zeros_like(carried[:, :1])), dim=1)
        parts = {"output": total - recurrence, "recurrence": recurrence}
    if layer.is_reversed:
        assert isinstance(batch.source, Padded)
        lengths = batch.source.lengths
        total = reverse(Padded(total, lengths)).values
        parts = {name: reverse(Padded(part, lengths)).values for name, part in parts.items()}
    return StateGradients(layer.name, layer.width, total, parts)


def _decoder_states(
    model: Model, record: ForwardRecord, gradients: _Gradients
) -> Iterator[StateGradients]:
    decoder = model.decoder
    for level, layer in enumerate(record.decoder):
        total = gradients.stack(layer.states)  # (B, T, C)
        if not isinstance(decoder, RecurrentDecoder) or record.initial is None:
            yield StateGradients(layer.name, layer.width, total, {})
            continue
        initial = gradients[record.initial][:, level : level + 1]
        total = torch.cat((initial, total), dim=1)  # (B, T + 1, C)
        none = torch.zeros_like(initial)
        recurrence = torch.cat((gradients.stack(layer.carried), none), dim=1)
        parts = {"recurrence": recurrence}
        if record.attention and level == decoder.query_layer:
            if "state" in decoder.context_uses:
                # The context has replaced the hidden vector that the cell reads. Only a current
                # query leaves the initial state in place.
                first = 0 if decoder.query_is_previous_state else 1
                recurrence[:, first:, : layer.width] = 0
            query = gradients.stack(record.attention[0].query_inputs)  # (B, T, Dq)
            query = torch.nn.functional.pad(query, (0, total.shape[-1] - layer.width))
            pair = (query, none) if decoder.query_is_previous_state else (none, query)
            parts["query"] = torch.cat(pair, dim=1)
        output = total - sum(parts.values())
        yield StateGradients(layer.name, layer.width, total, {"output": output, **parts})


def _attention(attended: RecordedAttention, gradients: _Gradients) -> AttentionGradients:
    traces = attended.steps
    read = torch.cat([gradients[trace.read] for trace in traces], dim=2)  # (B, H, T, Dv)
    values = traces[0].values
    if attended.attention.selection != "softmax":
        # The hard weights are constants of the autograd graph: ∂L/∂α follows from a = Σ α v.
        weights = read @ values.detach().transpose(-2, -1)
    else:
        weights = torch.cat([gradients[trace.weights] for trace in traces], dim=2)
    return AttentionGradients(
        attention=attended.attention,
        forward=_join_steps(traces),
        context=torch.cat([gradients[trace.context] for trace in traces], dim=1),
        read=read,
        weights=weights,
        scores=torch.cat([gradients[trace.scores] for trace in traces], dim=2),
        queries=torch.cat([gradients[trace.queries] for trace in traces], dim=2),
        keys=gradients.stack([trace.keys for trace in traces], dim=2),
        values=gradients.stack([trace.values for trace in traces], dim=2),
    )


def _join_steps(traces: Sequence[AttentionTrace]) -> AttentionTrace:
    """Join the attention traces of T decoder steps into one trace with T queries.

    The keys and values are equal at all steps. Those of the first step are used.
    """

    def join(name: str, dim: int) -> Tensor:
        return torch.cat([getattr(trace, name) for trace in traces], dim=dim).detach()

    return AttentionTrace(
        queries=join("queries", 2),
        keys=traces[0].keys.detach(),
        scores=join("scores", 2),
        weights=join("weights", 2),
        values=traces[0].values.detach(),
        read=join("read", 2),
        context=join("context", 1),
    )
