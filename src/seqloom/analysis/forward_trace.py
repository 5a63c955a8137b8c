"""Hidden states, attention weights and probabilities of a recurrent model for one sentence."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from seqloom.analysis.explain.explainer import decode_output
from seqloom.analysis.forward_record import RecordedAttention, RecordedLayer, record_forward
from seqloom.analysis.gradients import training_batch
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import ConfigError
from seqloom.inference.run import Run
from seqloom.models.recurrent import ContextUse, RecurrentDecoder, RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import SPECIAL_TOKENS, START

ContextReader = Literal["state", "next state", "output"]
"""A vector of the decoder that is computed from the attention context c_t of step t: the state s_t,
the state s_{t+1}, or the output of step t."""


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
    encoder_cell, decoder_cell = _cells(run.name, run.model)
    decoder = run.model.decoder
    assert isinstance(decoder, RecurrentDecoder)
    output = decode_output(run, text, target, decoding)
    record = record_forward(run.model, training_batch(run, [text], [output]))
    assert record.initial is not None, "a recurrent decoder has an initial state"
    attention = record.attention[0] if record.attention else None
    return ForwardTrace(
        source=output.source_pieces,
        inputs=(SPECIAL_TOKENS[START], *output.pieces[:-1]),
        output=output.pieces,
        encoder_cell=encoder_cell,
        decoder_cell=decoder_cell,
        encoder=tuple(map(_layer_states, record.encoder)),
        decoder=tuple(map(_layer_states, record.decoder)),
        initial=record.initial[0, 0, : record.decoder[0].width].detach(),
        attention=None if attention is None else _attention_weights(attention),
        probabilities=(-record.losses[0]).exp().detach(),
        contexts=None if attention is None else _contexts(attention),
        readers=_context_readers(decoder.context_uses, decoder.query_is_previous_state),
    )


def _cells(name: str, model: Model) -> tuple[str | None, str]:
    """Return the cell types of encoder and decoder: "rnn", "gru" or "lstm".

    The cell type of the encoder is None if the model has no encoder. Raises ConfigError if the
    encoder or the decoder is not recurrent.

    name: name of the run, for the error message
    """
    encoder, decoder = model.encoder, model.decoder
    problems = []
    if encoder is not None and not isinstance(encoder, RecurrentEncoder):
        problems.append(f"its encoder is a {type(encoder).__name__}")
    if not isinstance(decoder, RecurrentDecoder):
        problems.append(f"its decoder is a {type(decoder).__name__}")
    if problems or not isinstance(decoder, RecurrentDecoder):
        raise ConfigError(
            f"{name}: the model is not recurrent: {' and '.join(problems)}. "
            "Use a run with a recurrent model (model.encoder.kind and model.decoder.kind = "
            "'recurrent')."
        )
    if not isinstance(encoder, RecurrentEncoder):
        return None, decoder.layers[0].cell
    return (encoder.forward_layers or encoder.backward_layers)[0].cell, decoder.layers[0].cell


def _layer_states(layer: RecordedLayer) -> LayerStates:
    states = [state[0, : layer.width].detach() for state in layer.states]  # N times (D,)
    if layer.is_reversed:
        states.reverse()
    return LayerStates(layer.name, torch.stack(states))


def _attention_weights(attention: RecordedAttention) -> Tensor:
    """Return the attention weights of each decoder step, averaged over heads: (T, S)"""
    return torch.stack([trace.weights[0].mean(0)[0] for trace in attention.steps]).detach()


def _contexts(attention: RecordedAttention) -> Tensor:
    """Return the attention context of each decoder step: (T, C)"""
    return torch.cat([trace.context[0] for trace in attention.steps]).detach()


def _context_readers(
    uses: frozenset[ContextUse], query_is_previous_state: bool
) -> frozenset[ContextReader]:
    """Return which decoder vectors are computed from the attention context of step t.

    The vectors are "state" (of step t), "output" (of step t) and "next state" (of step t + 1).

    uses:                    where the decoder uses the context, for example at its "input"
    query_is_previous_state: True if the attention query is the state of the previous step. The
                             context is then known before the new state is computed.
    """
    readers: set[ContextReader] = set()
    if uses & {"readout", "layer"}:
        readers.add("output")
    if query_is_previous_state:
        if uses & {"input", "state"}:
            readers.add("state")
        return frozenset(readers)
    if "input" in uses:
        readers.add("next state")
    if "state" in uses:
        # The context replaces the new state, which the output and the next step read.
        readers |= {"output", "next state"}
    return frozenset(readers)
