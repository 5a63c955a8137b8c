"""Gradients of the training loss: at the inputs, at hidden states, inside attention, at the weights.

    L = Σ_t -log p(y_t | y_<t, source)         the cross-entropy, without label smoothing

At the inputs. x is the embedded token that a step reads:

    ∂L/∂x_s = chain + attention     at source step s
    ∂L/∂x_t = own + later           at target step t

A gradient passes from the decoder to the encoder on two paths: through the summary that initialises
the decoder state (the chain), and through the encoder states that the decoder attends to or copies
from (attention). The input of a decoder step affects the prediction of the same step (own) and,
through the recurrence or through self-attention, the predictions of later steps (later). Both sums
are exact for every model. To separate chain and attention, the autograd graph is cut at the encoder
output, and each path is differentiated separately. To separate own and later, the loss of each step
is differentiated separately.

At hidden states. The gradient is the total gradient of backpropagation through time: it includes the
paths through all later steps. The state s_t of a recurrent decoder layer influences the loss on
three paths, and its gradient is their exact sum:

    ∂L/∂s_t = output + recurrence + query

    output      through the readout and through higher layers at the same step
    recurrence  ∂L/∂s_{t+1} · ∂s_{t+1}/∂s_t, through the cell of the next step
    query       ∂L/∂q · ∂q/∂s_t, through the attention query that is computed from s_t

`measure_gradients` and `measure_loss_gradients` return the gradients as tensors. `trace_gradients`,
`profile_gradients` and `trace_loss_gradients` return their norms, with tokens as labels.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal

import torch
from torch import Tensor, nn

from seqloom.analysis.forward_trace import (
    ForwardRecord,
    RecordedAttention,
    RecordedLayer,
    prediction_losses,
    record_forward,
)
from seqloom.analysis.output import (
    check_step,
    decode_output,
    source_labels,
    to_plain,
    training_batch,
)
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.batch import Batch, Images, Padded
from seqloom.core.errors import ConfigError, DataError
from seqloom.inference.prediction import Prediction
from seqloom.inference.predictor import ProgressCallback
from seqloom.inference.run import Run
from seqloom.models.interface import DecoderModule, EncoderModule, Memory
from seqloom.models.seq2seq import Model
from seqloom.nn.formulas import is_extension
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import AttentionTrace, Observer, observing
from seqloom.nn.recurrent import reverse
from seqloom.text.vocabulary import SPECIAL_TOKENS, START

BATCH_SIZE = 16
"""Number of sentences per backward pass."""

Norms = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]
Place = Literal["states", "attention", "weights"]
"""Where the loss is differentiated."""
INITIAL = "initial"
"""Label of the initial state of a recurrent decoder."""


# Gradients at the embedded inputs


@dataclass(frozen=True)
class GradientFlow:
    """Gradients of a loss at the embedded inputs of all encoder and decoder steps.

    loss:      (B,)      loss of each row
    chain:     (B, S, D) gradient at the encoder inputs, through the encoder's summary vector
    attention: (B, S, D) gradient at the encoder inputs, through attention (or copying)
    own:       (B, T, E) gradient at the decoder inputs, from the prediction of the same step
    later:     (B, T, E) gradient at the decoder inputs, from the predictions of later steps

    S is 0 if the model has no encoder. E is 0 if the decoder reads no tokens.
    """

    loss: Tensor
    chain: Tensor
    attention: Tensor
    own: Tensor
    later: Tensor

    @property
    def source(self) -> Tensor:
        """(B, S, D) complete gradient at the encoder inputs: `chain` + `attention`."""
        return self.chain + self.attention

    @property
    def target(self) -> Tensor:
        """(B, T, E) complete gradient at the decoder inputs: `own` + `later`."""
        return self.own + self.later


def measure_gradients(model: Model, batch: Batch, step: int | None = None) -> GradientFlow:
    """Differentiate the loss of a batch with respect to the inputs of all steps.

    step: differentiate only the loss of this prediction, counted from 1. For rows with fewer
          steps, the loss is 0. Default: differentiate the losses of all predictions.

    The parameters of the model do not change, and their gradients are not accumulated.
    """
    check_no_ensemble(model)
    if isinstance(batch.source, Images):
        raise ConfigError(
            "an image encoder reads the complete image in one step, so there are no source steps "
            "to measure gradients at. Use `seqloom gradients` with one image and --at states, "
            "attention or weights."
        )
    # The recurrent kernels of cuDNN have no backward pass in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        with _capture_inputs(model.encoder) as captured:
            memory = model.encode(batch.source, batch.size, batch.packing)
        source_inputs = captured[0] if captured else memory.states
        cut = replace(memory, states=_leaf(memory.states), summary=_leaf(memory.summary))
        target_inputs, losses = _decode(model, batch, cut)
        selected = losses if step is None else _select_step(losses, step)
        states, summary, inputs = gradients_at(
            selected.sum(), (cut.states, cut.summary, target_inputs)
        )
        own = _own_gradients(selected, target_inputs)
        return GradientFlow(
            loss=selected.sum(1).detach(),
            chain=_backward_through(memory.summary, source_inputs, summary),
            attention=_backward_through(memory.states, source_inputs, states),
            own=own,
            later=inputs - own,
        )


def check_no_ensemble(model: Model) -> None:
    """Raise ConfigError if the model is an ensemble."""
    if model.decoder.is_ensemble:
        raise ConfigError(
            "an ensemble is not trained, so it has no gradient; measure each member by itself"
        )


class _InputCapture(Observer):
    """Replaces the embedded inputs by autograd leaves with equal values.

    leaves: the leaves, in the order in which the embedders report their results
    """

    def __init__(self) -> None:
        self.leaves: list[Tensor] = []

    def observe(self, part: nn.Module, name: str, value: Tensor) -> Tensor:
        if name != "input":
            return value
        self.leaves.append(_leaf(value))
        return self.leaves[-1]


@contextmanager
def _capture_inputs(part: EncoderModule | DecoderModule | None) -> Iterator[list[Tensor]]:
    """Replace the embedded inputs of an encoder or decoder by autograd leaves with equal values.

    Context manager. Yields a list, to which the forward pass inside the context appends the leaves.
    """
    capture = _InputCapture()
    with observing(capture):
        yield capture.leaves
    if part is not None and is_extension(part) and len(capture.leaves) != 1:
        raise ConfigError(
            f"{type(part).__name__} is defined outside seqloom, and its `forward` does not embed "
            "all inputs with one call of a `seqloom.nn.Embedder`. Use an `Embedder`, or measure "
            "gradients with --at states, attention or weights."
        )


def _leaf(tensor: Tensor) -> Tensor:
    """Return a tensor with the same values that is a leaf of the autograd graph."""
    return tensor.detach().requires_grad_()


def _decode(model: Model, batch: Batch, memory: Memory) -> tuple[Tensor, Tensor]:
    """Run the decoder. Returns its embedded inputs (B, T, E) and its losses (B, T)."""
    with _capture_inputs(model.decoder) as captured:
        output = model.decoder(batch.inputs.values, memory, batch.packing)
        logits = output.logits()  # (B, T, V)
    inputs = captured[0] if captured else logits.new_zeros(*logits.shape[:2], 0)
    return inputs, prediction_losses(logits, batch.targets)


def _select_step(losses: Tensor, step: int) -> Tensor:
    """Return the losses (B, T) with zeros at all steps except this one, counted from 1."""
    steps = torch.arange(1, losses.shape[1] + 1, device=losses.device)
    return losses * (steps == step)


def gradients_at(loss: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradient of the loss at each of the given tensors.

    The gradient is zero if the loss does not depend on the tensor. The tensors may also be inner
    nodes of the autograd graph.
    """
    required = [leaf for leaf in leaves if leaf.requires_grad]
    computed: list[Tensor | None] = []
    if loss.requires_grad and required:
        computed = list(torch.autograd.grad(loss, required, retain_graph=True, allow_unused=True))
    by_leaf = {id(leaf): gradient for leaf, gradient in zip(required, computed, strict=False)}
    gradients = [by_leaf.get(id(leaf)) for leaf in leaves]
    return [
        torch.zeros_like(leaf) if gradient is None else gradient
        for leaf, gradient in zip(leaves, gradients, strict=True)
    ]


def _own_gradients(losses: Tensor, inputs: Tensor) -> Tensor:
    """Return the gradient of each step's loss at the input of the same step.

    losses (B, T), inputs (B, T, E) -> gradients (B, T, E)
    """
    own = [
        gradients_at(loss.sum(), (inputs,))[0][:, step]
        for step, loss in enumerate(losses.unbind(1))
    ]
    return torch.stack(own, dim=1)


def _backward_through(output: Tensor, inputs: Tensor, gradient: Tensor) -> Tensor:
    """Return the part of the loss gradient that reaches the encoder inputs through one output.

    output:   one of the outputs of the encoder
    inputs:   (B, S, D) embedded inputs of the encoder; the result has the same shape
    gradient: gradient of the loss at this output
    """
    if not output.requires_grad:
        return torch.zeros_like(inputs)
    [result] = torch.autograd.grad(output, inputs, gradient, retain_graph=True, allow_unused=True)
    return torch.zeros_like(inputs) if result is None else result


def attention_gradients(
    attention: MultiHeadAttention, states: Tensor, source: Tensor, mask: Tensor
) -> dict[str, Tensor]:
    """Return the gradients of ½‖context‖² with respect to "queries", "keys" and "values".

    states: (B, T, Dq) vectors from which the queries are computed
    source: (B, S, Dk) vectors from which the keys and values are computed
    mask:   broadcast to (B, H, T, S)

    With hard attention, the gradients of queries and keys are zero.
    """
    with torch.enable_grad():
        attended = attention.trace(_leaf(states), _leaf(source), mask)
        tensors = {"queries": attended.queries, "keys": attended.keys, "values": attended.values}
        loss = attended.context.square().sum() / 2
        return dict(zip(tensors, gradients_at(loss, tuple(tensors.values())), strict=True))


# Norms of the gradients at the embedded inputs


@dataclass(frozen=True)
class StepGradients:
    """Gradient norms at all steps of the encoder or at all steps of the decoder.

    The gradient at a step is the sum of two parts.

    - Encoder: "chain" is the part that flows through the initial state of the decoder.
      "attention" is the part that flows through the attention.
    - Decoder: "own" is the gradient of the loss at the same step. "later" is the gradient of the
      losses at later steps.

    labels: token of each step. For means over sentences: distance of each step from the last step
    whole:  norm of the gradient at each step
    parts:  maps the name of each part to its norms, one per step
    """

    labels: tuple[str, ...]
    whole: Norms
    parts: Mapping[str, Norms]

    def to_json(self) -> dict[str, Any]:
        return to_plain({"labels": self.labels, "whole": self.whole, **self.parts})


@dataclass(frozen=True)
class GradientTrace:
    """Gradient norms for one sentence.

    output: pieces of the output whose loss is differentiated
    step:   the prediction whose loss is differentiated, counted from 1. None if the losses of all
            predictions are differentiated.
    loss:   -log p of that prediction, or the sum over all predictions
    """

    output: tuple[str, ...]
    step: int | None
    loss: float
    source: StepGradients
    target: StepGradients

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        return to_plain(vars(self))


@dataclass(frozen=True)
class GradientProfile:
    """Gradient norms averaged over many sentences, by distance from the last step.

    Distance 0 is the last step: for the source, this is its END. The mean at a distance is over all
    sentences that are long enough to have such a step.

    counts: number of sentences in each mean, under the keys "source" and "target"
    """

    sentences: int
    step: int | None
    source: StepGradients
    target: StepGradients
    counts: Mapping[str, tuple[int, ...]]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        return to_plain(vars(self))


def trace_gradients(
    run: Run,
    text: str,
    target: str | None = None,
    step: int | None = None,
    decoding: DecodingConfig | None = None,
) -> GradientTrace:
    """Differentiate the loss of a target text and return the gradient norms.

    text:     source text. For a language model, the text to complete; it is ignored if `target` is
              given
    target:   target text. Default: the output that the search returns.
    step:     differentiate only the loss of this prediction, counted from 1. Default: the
              losses of all predictions.
    decoding: options of the search. Default: the options of the run.
    """
    output = decode_output(run, text, target, decoding)
    if step is not None:
        check_step(step, output)
    return _trace_batch(run, [text], [output], step)[0]


def profile_gradients(
    run: Run,
    sources: Sequence[str],
    targets: Sequence[str],
    step: int | None = None,
    advance: ProgressCallback | None = None,
) -> GradientProfile:
    """Average the gradient norms over sentence pairs.

    sources: source texts; empty strings for a language model
    step:    differentiate only the loss of this prediction, counted from 1. Sentences with fewer
             predictions are skipped. Default: all predictions.
    advance: callback that receives the number of completed sentences and the total number
    """
    if step is not None and step < 1:
        raise DataError(f"there is no step {step}; the first step is 1")
    outputs = run.score(sources, targets, attention=False)
    selected = [i for i, output in enumerate(outputs) if len(output.pieces) >= (step or 1)]
    if not selected:
        longest = max((len(output.pieces) for output in outputs), default=0)
        raise DataError(f"there is no step {step or 1}; the longest output has {longest} steps")
    traces: list[GradientTrace] = []
    for start in range(0, len(selected), BATCH_SIZE):
        batch = selected[start : start + BATCH_SIZE]
        traces += _trace_batch(run, [sources[i] for i in batch], [outputs[i] for i in batch], step)
        if advance is not None:
            advance(len(traces), len(selected))
    source, source_counts = _average([each.source for each in traces])
    target, target_counts = _average([each.target for each in traces])
    counts = {"source": source_counts, "target": target_counts}
    return GradientProfile(len(traces), step, source, target, counts)


def _trace_batch(
    run: Run, texts: Sequence[str], outputs: Sequence[Prediction], step: int | None
) -> list[GradientTrace]:
    flow = measure_gradients(run.model, training_batch(run, texts, outputs), step)
    source_parts = {"chain": flow.chain, "attention": flow.attention}
    target_parts = {"own": flow.own, "later": flow.later}
    return [
        GradientTrace(
            output=output.pieces,
            step=step,
            loss=float(flow.loss[row]),
            source=_step_gradients(flow.source, source_parts, row, output.source_pieces),
            target=_step_gradients(
                flow.target, target_parts, row, (SPECIAL_TOKENS[START], *output.pieces[:-1])
            ),
        )
        for row, output in enumerate(outputs)
    ]


def _step_gradients(
    whole: Tensor, parts: Mapping[str, Tensor], row: int, labels: tuple[str, ...]
) -> StepGradients:
    """Compute the norm of the gradient at each step of one sentence.

    whole:  (B, N, D) gradients of the loss with respect to the D-dimensional inputs of N steps
    parts:  (B, N, D) the two summands of `whole`
    labels: one label per step. Steps after the last label are padding and are left out.
    """
    count = len(labels)
    summands = {name: _norms(gradient[row, :count]) for name, gradient in parts.items()}
    return StepGradients(labels, _norms(whole[row, :count]), summands)


def _average(sides: Sequence[StepGradients]) -> tuple[StepGradients, tuple[int, ...]]:
    """Average the gradient norms of all sentences, separately for each distance from the last step.

    Returns the means, and the number of sentences in each mean.
    """
    length = max(len(side.labels) for side in sides)
    counts = tuple(sum(len(side.labels) > distance for side in sides) for distance in range(length))

    def mean(norms: Sequence[Sequence[float]]) -> Norms:
        from_end = zip_longest(*(reversed(each) for each in norms), fillvalue=0.0)
        return tuple(sum(values) / count for values, count in zip(from_end, counts, strict=True))

    parts = {name: mean([side.parts[name] for side in sides]) for name in sides[0].parts}
    labels = tuple(str(distance) for distance in range(length))
    return StepGradients(labels, mean([side.whole for side in sides]), parts), counts


# Gradients at hidden states, inside attention and at the weights


@dataclass(frozen=True)
class StateGradients:
    """Gradients at the hidden states of one layer.

    name:  for example "layer 1", or "layer 1 ←" for the backward direction
    width: width of the hidden vector h
    total: (B, N, C) gradient at each of the N states
    parts: terms whose sum is `total`, by the path of the gradient: "output", "recurrence" and
           "query". Only the decoder layer that computes the attention queries has a "query" term.
           Empty for Transformer layers
    query: the state from which attention computes a query, see `HiddenLayer`

    C is `width`. For an LSTM, C is 2 · `width`, because a state consists of h and the cell vector.
    A recurrent decoder layer has an initial state and a state after each step. Other layers have
    one state per token.
    """

    name: str
    width: int
    total: Tensor
    parts: Mapping[str, Tensor]
    query: Literal["previous", "current"] | None = None


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
        losses = record.losses if step is None else _select_step(record.losses, step)
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

    def join(self, tensors: Sequence[Tensor], dim: int) -> Tensor:
        return torch.cat([self[tensor] for tensor in tensors], dim=dim)


def _differentiate(
    model: Model, batch: Batch, record: ForwardRecord, losses: Tensor
) -> LossGradients:
    parameters = dict(model.named_parameters())
    gradients = _Gradients(losses.sum(), [*record.tensors(), *parameters.values()])
    decoder = enumerate(record.decoder)
    return LossGradients(
        losses=losses.detach(),
        encoder=tuple(_encoder_states(layer, gradients, batch) for layer in record.encoder),
        decoder=tuple(_decoder_states(level, layer, record, gradients) for level, layer in decoder),
        memory=gradients[record.memory.states],
        attention=tuple(_attention(attended, gradients) for attended in record.attention),
        parameters={name: gradients[parameter] for name, parameter in parameters.items()},
    )


def _encoder_states(recorded: RecordedLayer, gradients: _Gradients, batch: Batch) -> StateGradients:
    layer, total = recorded.layer, gradients.stack(recorded.states)  # (B, S, C)
    parts: dict[str, Tensor] = {}
    if recorded.carried:
        # The cell of step t reads the state after step t - 1. No cell reads the last state.
        carried = gradients.stack(recorded.carried)
        recurrence = torch.cat((carried[:, 1:], torch.zeros_like(carried[:, :1])), dim=1)
        parts = {"output": total - recurrence, "recurrence": recurrence}
    if layer.is_reversed:
        assert isinstance(batch.source, Padded)
        lengths = batch.source.lengths
        total = reverse(Padded(total, lengths)).values
        parts = {name: reverse(Padded(part, lengths)).values for name, part in parts.items()}
    return StateGradients(layer.name, layer.width, total, parts)


def _decoder_states(
    level: int, recorded: RecordedLayer, record: ForwardRecord, gradients: _Gradients
) -> StateGradients:
    layer, total = recorded.layer, gradients.stack(recorded.states)  # (B, T, C)
    if record.initial is None:
        return StateGradients(layer.name, layer.width, total, {})
    initial = gradients[record.initial][:, level : level + 1]
    total = torch.cat((initial, total), dim=1)  # (B, T + 1, C)
    none = torch.zeros_like(initial)
    recurrence = torch.cat((gradients.stack(recorded.carried), none), dim=1)
    parts = {"recurrence": recurrence}
    if layer.query is not None:
        if layer.is_replaced:
            # The context has replaced the hidden vector that the cell reads. Only a current query
            # leaves the initial state in place.
            recurrence[:, 0 if layer.query == "previous" else 1 :, : layer.width] = 0
        query = gradients.join(record.attention[0].query_inputs, dim=1)  # (B, T, Dq)
        query = nn.functional.pad(query, (0, total.shape[-1] - layer.width))
        pair = (query, none) if layer.query == "previous" else (none, query)
        parts["query"] = torch.cat(pair, dim=1)
    output = total - sum(parts.values())
    parts = {"output": output, **parts}
    return StateGradients(layer.name, layer.width, total, parts, layer.query)


def _attention(attended: RecordedAttention, gradients: _Gradients) -> AttentionGradients:
    traces = attended.steps
    joined = {
        name: gradients.join([getattr(trace, name) for trace in traces], dim)
        for name, dim in (("queries", 2), ("scores", 2), ("read", 2), ("context", 1))
    }
    if attended.attention.selection != "softmax":
        # The hard weights are constants of the autograd graph: ∂L/∂α follows from a = Σ α v.
        weights = joined["read"] @ traces[0].values.detach().transpose(-2, -1)
    else:
        weights = gradients.join([trace.weights for trace in traces], dim=2)
    return AttentionGradients(
        attention=attended.attention,
        forward=attended.joined(),
        weights=weights,
        keys=gradients.stack([trace.keys for trace in traces], dim=2),
        values=gradients.stack([trace.values for trace in traces], dim=2),
        **joined,
    )


# Norms of the gradients at hidden states, inside attention and at the weights


@dataclass(frozen=True)
class StateNorms:
    """Gradient norms at the hidden states of one layer.

    name:   for example "layer 1", or "layer 1 ←" for the backward direction
    labels: one token per state. The label of a decoder state is the token that is predicted from
            it; the initial state of a recurrent decoder is labelled "initial"
    total:  norm of the gradient at each hidden vector
    parts:  norms of the summands of this gradient: "output" (through the output and higher layers),
            "recurrence" (through the next step) and "query" (through the attention query). Empty
            for Transformer layers
    cell:   norm of the gradient at the cell c of an LSTM; empty for other layers
    """

    name: str
    labels: tuple[str, ...]
    total: Norms
    parts: Mapping[str, Norms]
    cell: Norms = ()

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        cell = {"cell": self.cell} if self.cell else {}
        named = {"name": self.name, "labels": self.labels, "total": self.total}
        return to_plain({**named, **self.parts, **cell})


@dataclass(frozen=True)
class AttentionNorms:
    """Gradients of one attention head at each decoder step.

    layer, head: counted from 1
    is_hard:     True if attention selects one key. The gradients at scores, queries and keys are
                 then zero
    context:     (T,)   norm of ∂L/∂a at the context vector a; the same for all heads of a layer
    queries:     (T,)   norm of ∂L/∂q at the query q
    all_keys:    (S,)   norm of ∂L/∂k, the sum of the parts of all decoder steps
    weights:     (T, S) ∂L/∂α at the attention weights α, not a norm
    scores:      (T, S) ∂L/∂e at the scores e, not a norm
    keys:        (T, S) norm of the part of ∂L/∂k that comes from this decoder step, for each key k
    """

    layer: int
    head: int
    is_hard: bool
    context: Norms
    queries: Norms
    all_keys: Norms
    weights: Matrix
    scores: Matrix
    keys: Matrix


@dataclass(frozen=True)
class ParameterNorm:
    """Gradient norm at one parameter.

    name:  name in the model, for example "decoder.attention.to_query.weight"
    group: part of the model to which the parameter belongs, for example "attention"
    """

    name: str
    group: str
    shape: tuple[int, ...]
    norm: float


@dataclass(frozen=True)
class LossGradientTrace:
    """Gradients of the loss of one sentence.

    source:    source pieces; empty for a language model
    output:    pieces of the output whose loss is differentiated
    step:      the prediction whose loss is differentiated, counted from 1; None: all predictions
    loss:      -log p of that prediction, or the sum over all predictions
    encoder:   gradient norms at the hidden states h of each encoder layer; for an image encoder,
               only at its output
    decoder:   gradient norms at the hidden states s of each decoder layer; empty for a label
               decoder, which has no hidden states
    attention: gradients of every head in every decoder layer with cross-attention
    weights:   gradient norm at every parameter
    """

    source: tuple[str, ...]
    output: tuple[str, ...]
    step: int | None
    loss: float
    encoder: tuple[StateNorms, ...]
    decoder: tuple[StateNorms, ...]
    attention: tuple[AttentionNorms, ...]
    weights: tuple[ParameterNorm, ...]

    def head(self, layer: int, head: int) -> AttentionNorms:
        """Return the attention head with these numbers, counted from 1."""
        return next(each for each in self.attention if (each.layer, each.head) == (layer, head))

    def group_norms(self) -> dict[str, float]:
        """Return the gradient norm of each group of parameters: √(Σ ‖gradient‖²)."""
        squares: dict[str, float] = {}
        for parameter in self.weights:
            squares[parameter.group] = squares.get(parameter.group, 0.0) + parameter.norm**2
        return {group: square**0.5 for group, square in squares.items()}

    def to_json(self, place: Place | None = None) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON.

        place: "states", "attention" or "weights": include only the gradients at this place.
               Default: all gradients.
        """
        places: dict[Place, dict[str, Any]] = {
            "states": {"encoder": self.encoder, "decoder": self.decoder},
            "attention": {"attention": self.attention},
            "weights": {"groups": self.group_norms(), "weights": self.weights},
        }
        record = {name: getattr(self, name) for name in ("source", "output", "step", "loss")}
        for name, content in places.items():
            if place in (None, name):
                record |= content
        return to_plain(record)


def trace_loss_gradients(
    run: Run,
    text: str,
    target: str | None = None,
    step: int | None = None,
    decoding: DecodingConfig | None = None,
) -> LossGradientTrace:
    """Differentiate the training loss of a target text, and return the norms of its gradients.

    The gradients are those at hidden states, inside attention, and at the weights.

    text:     source text. For a language model: the text to complete; not used if `target` is given
    target:   target text. Default: the output that the search returns.
    step:     differentiate only the loss of this prediction, counted from 1. Default: the
              losses of all predictions.
    decoding: options of the search. Default: the options of the run.
    """
    return norms_of(*differentiate_output(run, text, target, step, decoding), step)


def differentiate_output(
    run: Run,
    text: str,
    target: str | None = None,
    step: int | None = None,
    decoding: DecodingConfig | None = None,
) -> tuple[Prediction, LossGradients]:
    """Differentiate the loss of an output. Returns the output and the gradients of its loss.

    The arguments are those of `trace_loss_gradients`.
    """
    output = decode_output(run, text, target, decoding)
    if step is not None:
        check_step(step, output)
    batch = training_batch(run, [text], [output])
    return output, measure_loss_gradients(run.model, batch, step)


def norms_of(output: Prediction, gradients: LossGradients, step: int | None) -> LossGradientTrace:
    """Return the norms of given loss gradients, with tokens as labels.

    output: the output whose loss was differentiated
    step:   the prediction whose loss was differentiated, counted from 1; None: all predictions
    """
    sources = source_labels(output, gradients.memory.shape[1])
    encoder = [_state_norms(layer, sources) for layer in gradients.encoder]
    if sources and not encoder:  # an image encoder has no layers of steps
        name = "encoder output"
        encoder = [_state_norms(StateGradients(name, 0, gradients.memory, {}), sources)]
    decoder = [_state_norms(layer, output.pieces) for layer in gradients.decoder]
    heads = [
        _attention_norms(layer, number, head)
        for number, layer in enumerate(gradients.attention, start=1)
        for head in range(layer.attention.heads)
    ]
    weights = [
        ParameterNorm(name, parameter_group(name), tuple(each.shape), float(each.norm()))
        for name, each in gradients.parameters.items()
    ]
    return LossGradientTrace(
        source=sources,
        output=output.pieces,
        step=step,
        loss=float(gradients.losses.sum()),
        encoder=tuple(encoder),
        decoder=tuple(decoder),
        attention=tuple(heads),
        weights=tuple(weights),
    )


def _state_norms(layer: StateGradients, tokens: Sequence[str]) -> StateNorms:
    has_initial = layer.total.shape[1] == len(tokens) + 1
    labels = (INITIAL, *tokens) if has_initial else tuple(tokens)
    width = layer.width or layer.total.shape[-1]
    cell = layer.total[0, :, width:]  # (N, C - width)
    return StateNorms(
        name=layer.name,
        labels=labels,
        total=_norms(layer.total[0, :, :width]),
        parts={name: _norms(part[0, :, :width]) for name, part in layer.parts.items()},
        cell=_norms(cell) if cell.shape[-1] else (),
    )


def _attention_norms(layer: AttentionGradients, number: int, head: int) -> AttentionNorms:
    return AttentionNorms(
        layer=number,
        head=head + 1,
        is_hard=layer.is_hard,
        context=_norms(layer.context[0]),
        queries=_norms(layer.queries[0, head]),
        all_keys=_norms(layer.keys[0, head].sum(dim=0)),
        weights=_rows(layer.weights[0, head]),
        scores=_rows(layer.scores[0, head]),
        keys=_rows(layer.keys[0, head].norm(dim=-1)),
    )


def _norms(gradients: Tensor) -> Norms:
    """Return the norm of each of the N rows: (N, D) -> N numbers"""
    return tuple(gradients.norm(dim=-1).tolist())


def _rows(matrix: Tensor) -> Matrix:
    return tuple(tuple(row) for row in matrix.tolist())


_GROUPS = {
    r"encoder\.embedder": "encoder embedding",
    r"encoder\.forward_layers\.(\d+)": "encoder layer {} →",
    r"encoder\.backward_layers\.(\d+)": "encoder layer {} ←",
    r"encoder\.layers\.(\d+)\.attention(?:_residual)?\.": "encoder layer {}: self-attention",
    r"encoder\.layers\.(\d+)\.feedforward": "encoder layer {}: feed-forward",
    r"encoder\.norm": "encoder norm",
    r"encoder": "encoder",
    r"decoder\.embedder": "decoder embedding",
    r"decoder\.previous": "decoder embedding",
    r"decoder\.initial_state": "initial state",
    r"decoder\.attention": "attention",
    r"decoder\.layers\.(\d+)\.attention(?:_residual)?\.": "decoder layer {}: self-attention",
    r"decoder\.layers\.(\d+)\.cross_attention": "decoder layer {}: cross-attention",
    r"decoder\.layers\.(\d+)\.feedforward": "decoder layer {}: feed-forward",
    r"decoder\.layers\.(\d+)": "decoder layer {}",
    r"decoder\.to_state": "context to state",
    r"decoder\.norm": "decoder norm",
    r"decoder\.copying": "copying",
    r"decoder\.readout": "readout",
}
"""Regular expressions for parameter names, and the group of the parameters that match.

The first expression that matches a name decides. {} stands for the number of the layer, counted
from 1.
"""


def parameter_group(name: str) -> str:
    """Return the part of the model to which a parameter belongs, for example "attention"."""
    for pattern, group in _GROUPS.items():
        if match := re.match(pattern, name):
            return group.format(*(int(number) + 1 for number in match.groups()))
    return name.partition(".")[0]
