"""Norms of the loss gradients of one sentence: at hidden states, inside attention, at the weights.

`measure_loss_gradients` computes the gradients. This module adds tokens as labels and reduces each
gradient vector to its norm. The gradients at attention weights and scores are one number for each
source token. They are not reduced and keep their sign.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from seqloom.analysis.explain.explainer import check_step, decode_output
from seqloom.analysis.gradients import training_batch
from seqloom.analysis.loss_gradients import (
    AttentionGradients,
    LossGradients,
    StateGradients,
    measure_loss_gradients,
)
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run

Place = Literal["states", "attention", "weights"]
"""Where the loss is differentiated."""
INITIAL = "initial"
"""Label of the initial state of a recurrent decoder."""

Norms = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]


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
        parts = {name: list(norms) for name, norms in self.parts.items()}
        cell = {"cell": list(self.cell)} if self.cell else {}
        named = {"name": self.name, "labels": list(self.labels)}
        return {**named, "total": list(self.total), **parts, **cell}


@dataclass(frozen=True)
class AttentionNorms:
    """Gradients of one attention head at each decoder step.

    layer, head: counted from 1
    is_hard:     True if attention selects one key. The gradients at scores, queries and keys are
                 then zero
    context:     (T,)   norm of ∂L/∂a at the context vector a; the same for all heads of a layer
    weights:     (T, S) ∂L/∂α at the attention weights α, not a norm
    scores:      (T, S) ∂L/∂e at the scores e, not a norm
    queries:     (T,)   norm of ∂L/∂q at the query q
    keys:        (T, S) norm of the part of ∂L/∂k that comes from this decoder step, for each key k
    all_keys:    (S,)   norm of ∂L/∂k, the sum of the parts of all decoder steps
    """

    layer: int
    head: int
    is_hard: bool
    context: Norms
    weights: Matrix
    scores: Matrix
    queries: Norms
    keys: Matrix
    all_keys: Norms

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        vectors = {name: list(getattr(self, name)) for name in ("context", "queries", "all_keys")}
        matrices = {
            name: [list(row) for row in getattr(self, name)]
            for name in ("weights", "scores", "keys")
        }
        head = {"layer": self.layer, "head": self.head, "is_hard": self.is_hard}
        return {**head, **vectors, **matrices}


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

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        return {
            "name": self.name,
            "group": self.group,
            "shape": list(self.shape),
            "norm": self.norm,
        }


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
        places: dict[str, dict[str, Any]] = {
            "states": {
                "encoder": [layer.to_json() for layer in self.encoder],
                "decoder": [layer.to_json() for layer in self.decoder],
            },
            "attention": {"attention": [head.to_json() for head in self.attention]},
            "weights": {
                "groups": self.group_norms(),
                "weights": [parameter.to_json() for parameter in self.weights],
            },
        }
        record: dict[str, Any] = {"source": list(self.source), "output": list(self.output)}
        record |= {"step": self.step, "loss": self.loss}
        for name, content in places.items():
            if place in (None, name):
                record |= content
        return record


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


def norms_of(output: Prediction, gradients: LossGradients, step: int | None) -> LossGradientTrace:
    """Return the norms of given loss gradients, with tokens as labels.

    output: the output whose loss was differentiated
    step:   the prediction whose loss was differentiated, counted from 1; None: all predictions
    """
    sources = source_labels(output, gradients)
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


def source_labels(output: Prediction, gradients: LossGradients) -> tuple[str, ...]:
    """Return one label per source position: the token at this position.

    The source positions of an image are the cells of a grid. Their labels are "cell 1", "cell 2" …
    """
    cells = tuple(f"cell {number + 1}" for number in range(gradients.memory.shape[1]))
    return output.source_pieces or cells


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
        weights=_rows(layer.weights[0, head]),
        scores=_rows(layer.scores[0, head]),
        queries=_norms(layer.queries[0, head]),
        keys=_rows(layer.keys[0, head].norm(dim=-1)),
        all_keys=_norms(layer.keys[0, head].sum(dim=0)),
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
