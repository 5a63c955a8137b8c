"""Runs a model with teacher forcing and records its hidden states and its attention.

`record_forward` keeps the tensors at which a loss is differentiated. The usual forward pass computes
a recurrent layer over all steps in one operation, and attention in a fused kernel. There, hidden
states and attention scores are not separate tensors of the autograd graph, so no gradient can be
measured at them. `ForwardRecorder` is an observer that makes recurrent layers run step by step and
computes attention separately for each decoder step. The results are the same.

`trace_forward` returns the values of a recurrent model for one sentence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from seqloom.analysis.output import decode_output, training_batch
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.inference.run import Run
from seqloom.models.interface import ContextReader, HiddenLayer, Memory
from seqloom.models.seq2seq import Model
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.observer import AttentionInputs, AttentionTrace, Observer, observing
from seqloom.text.vocabulary import PAD, SPECIAL_TOKENS, START


@dataclass
class RecordedLayer:
    """The hidden states of one layer, in the order in which the layer computes them.

    states:  one tensor (B, C) per step: the state after the step
    carried: one tensor (B, C) per step: the state before the step. Only the recurrent cell reads
             this tensor, so its gradient shows the effect of the recurrence alone. Empty for
             Transformer layers

    C is the width of a state.
    """

    layer: HiddenLayer
    states: list[Tensor] = field(default_factory=list)
    carried: list[Tensor] = field(default_factory=list)


@dataclass
class RecordedAttention:
    """Cross-attention of one decoder layer, at every decoder step.

    steps:        for each decoder step, all intermediate results of attention, from the query to
                  the context. Each step has its own tensors of keys and values, so that their
                  gradients can be measured for each step separately
    query_inputs: one tensor (B, 1, Dq) per decoder step: the vectors from which the queries are
                  computed, with width Dq
    """

    attention: MultiHeadAttention
    steps: list[AttentionTrace] = field(default_factory=list)
    query_inputs: list[Tensor] = field(default_factory=list)

    def joined(self) -> AttentionTrace:
        """Join the T decoder steps into one trace with T queries.

        The keys and values are equal at all steps. Those of the first step are used.
        """

        def join(name: str, dim: int) -> Tensor:
            return torch.cat([getattr(step, name) for step in self.steps], dim=dim).detach()

        return AttentionTrace(
            queries=join("queries", 2),
            keys=self.steps[0].keys.detach(),
            scores=join("scores", 2),
            weights=join("weights", 2),
            values=self.steps[0].values.detach(),
            read=join("read", 2),
            context=join("context", 1),
        )


class ForwardRecorder(Observer):
    """Records hidden states and attention, each in a tensor of its own in the autograd graph."""

    is_stepwise = True

    def __init__(
        self, layers: Sequence[HiddenLayer], attentions: Sequence[MultiHeadAttention]
    ) -> None:
        self.layers = {layer.reporter: RecordedLayer(layer) for layer in layers}
        self.attentions = {id(each): RecordedAttention(each) for each in attentions}
        self.initial: Tensor | None = None

    def observe(self, part: nn.Module, name: str, value: Tensor) -> Tensor:
        if name == "initial state":
            self.initial = _separate(value)
            return self.initial
        if (recorded := self.layers.get(part)) is None:
            return value
        if name == "stream":  # (B, N, D): one tensor for each of the N positions
            recorded.states += value.unbind(1)
            return torch.stack(recorded.states, dim=1)
        if name == "carried":
            value = value.view_as(value)
        (recorded.carried if name == "carried" else recorded.states).append(value)
        return value

    def attend(self, inputs: AttentionInputs) -> Tensor | None:
        """Compute attention separately for each query, if the attention is recorded."""
        if (recorded := self.attentions.get(id(inputs.attention))) is None:
            return None
        contexts = []
        for step in range(inputs.states.shape[1]):
            single = inputs.only(step)
            states = single.states.view_as(single.states)
            trace = replace(single, states=states).trace()
            recorded.query_inputs.append(states)
            recorded.steps.append(trace)
            contexts.append(trace.context)
        return torch.cat(contexts, dim=1)


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

    def tensors(self) -> Iterator[Tensor]:
        """Yield the tensors at which gradients can be measured."""
        yield self.memory.states
        if self.initial is not None:
            yield self.initial
        for layer in (*self.encoder, *self.decoder):
            yield from (*layer.states, *layer.carried)
        for attended in self.attention:
            yield from attended.query_inputs
            for step in attended.steps:
                yield from vars(step).values()


def record_forward(model: Model, batch: Batch) -> ForwardRecord:
    """Run the model with teacher forcing, and record the tensors of the forward pass.

    Gradients must be enabled. The model must be in evaluation mode, so that there is no dropout.
    """
    assert not model.training, "the recorded pass needs a model in evaluation mode"
    encoder = [] if model.encoder is None else model.encoder.hidden_layers()
    decoder, attentions = model.decoder.hidden_layers(), model.decoder.source_attentions()
    recorder = ForwardRecorder([*encoder, *decoder], attentions)
    with observing(recorder):
        memory = model.encode(batch.source, batch.size)
        logits = model.decoder.stepwise_logits(batch.inputs.values, memory)
    return ForwardRecord(
        losses=prediction_losses(logits, batch.targets),
        encoder=[recorder.layers[layer.reporter] for layer in encoder],
        decoder=[recorder.layers[layer.reporter] for layer in decoder],
        memory=memory,
        initial=recorder.initial,
        attention=list(recorder.attentions.values()),
    )


def prediction_losses(logits: Tensor, targets: Padded) -> Tensor:
    """Return the loss -log p(target) of every prediction, 0 at padding: (B, T, V) -> (B, T)"""
    is_real = targets.mask & (targets.values != PAD)
    indices = targets.values.masked_fill(~is_real, 0).unsqueeze(-1)
    losses = -logits.log_softmax(dim=-1).gather(-1, indices).squeeze(-1)
    return torch.where(is_real, losses, 0.0)


def _separate(tensor: Tensor) -> Tensor:
    """Return a new tensor with the same values, which is a separate node of the autograd graph.

    The gradient at the new tensor covers only uses of the new tensor, not of the original one.
    """
    return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()


@dataclass(frozen=True)
class LayerStates:
    """The hidden vectors of one recurrent layer.

    name:   for example "layer 1", or "layer 1 ←" for the backward direction
    states: (N, D) hidden vector after each token, in the order of the text
    """

    name: str
    states: Tensor


@dataclass(frozen=True)
class ForwardTrace:
    """The forward pass of a recurrent model for one sentence.

    source:        source tokens; empty for a language model
    inputs:        decoder inputs: START and the output tokens without the last one
    output:        output tokens
    encoder_cell:  "rnn", "gru" or "lstm"; None for a language model
    decoder_cell:  "rnn", "gru" or "lstm"
    encoder:       layers of the encoder; empty for a language model
    decoder:       layers of the decoder
    initial:       (D,) hidden vector of the lowest decoder layer before the first step
    attention:     (T, S) attention weights of each step, averaged over heads; None without attention
    probabilities: (T,) probability of each output token, given the tokens before it
    contexts:      (T, C) attention context of each step; None without attention
    readers:       which decoder vectors are computed from the context of step t: "state" (of step
                   t), "output" (of step t) or "next state" (of step t + 1). Empty without attention
    """

    source: tuple[str, ...]
    inputs: tuple[str, ...]
    output: tuple[str, ...]
    encoder_cell: str | None
    decoder_cell: str
    encoder: tuple[LayerStates, ...]
    decoder: tuple[LayerStates, ...]
    initial: Tensor
    attention: Tensor | None
    probabilities: Tensor
    contexts: Tensor | None = None
    readers: frozenset[ContextReader] = frozenset()


def trace_forward(
    run: Run, text: str, target: str | None = None, decoding: DecodingConfig | None = None
) -> ForwardTrace:
    """Run a recurrent model with teacher forcing, and return its states and probabilities.

    text:     source text; for a language model, the text to complete
    target:   output text. Default: the output that the search returns for the text.
    decoding: options of the search. Default: the options of the run.
    """
    encoder_cell, decoder_cell = recurrent_cells(run.name, run.model)
    output = decode_output(run, text, target, decoding)
    record = record_forward(run.model, training_batch(run, [text], [output]))
    assert record.initial is not None, "a recurrent decoder has an initial state"
    attention = record.attention[0].joined() if record.attention else None
    return ForwardTrace(
        source=output.source_pieces,
        inputs=(SPECIAL_TOKENS[START], *output.pieces[:-1]),
        output=output.pieces,
        encoder_cell=encoder_cell,
        decoder_cell=decoder_cell,
        encoder=tuple(map(_layer_states, record.encoder)),
        decoder=tuple(map(_layer_states, record.decoder)),
        initial=record.initial[0, 0, : record.decoder[0].layer.width].detach(),
        attention=None if attention is None else attention.weights[0].mean(0),
        probabilities=(-record.losses[0]).exp().detach(),
        contexts=None if attention is None else attention.context[0],
        readers=run.model.decoder.context_readers,
    )


def recurrent_cells(name: str, model: Model) -> tuple[str | None, str]:
    """Return the cell types of encoder and decoder: "rnn", "gru" or "lstm".

    The cell type of the encoder is None if the model has no encoder. Raises ConfigError if the
    encoder or the decoder is not recurrent.

    name: name of the run, for the error message
    """
    cells = {
        part: part.recurrent_cell for part in (model.encoder, model.decoder) if part is not None
    }
    problems = [
        f"its {'decoder' if part is model.decoder else 'encoder'} is a {type(part).__name__}"
        for part, cell in cells.items()
        if cell is None
    ]
    decoder_cell = cells[model.decoder]
    if problems or decoder_cell is None:
        raise ConfigError(
            f"{name}: the model is not recurrent: {' and '.join(problems)}. "
            "Use a run with a recurrent model (model.encoder.kind and model.decoder.kind = "
            "'recurrent')."
        )
    return None if model.encoder is None else cells[model.encoder], decoder_cell


def _layer_states(recorded: RecordedLayer) -> LayerStates:
    layer = recorded.layer
    states = [state[0, : layer.width].detach() for state in recorded.states]  # N times (D,)
    if layer.is_reversed:
        states.reverse()
    return LayerStates(layer.name, torch.stack(states))
