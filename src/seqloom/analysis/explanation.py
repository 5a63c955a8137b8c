"""Explains one decoder step of a run, and the backward pass through the attention of one step.

`explain` lists every value of a step with its formula. The decoder describes its own step
(`DecoderModule.describe_step`).

`explain_backward` lists gradients. The loss L is -log p of the token that the step predicts. The
gradients are listed in the order in which backpropagation computes them: context vector a, attention
values v, attention weights α, scores e, query q, keys k and, in a recurrent decoder, the states.

    a = Σ α v             ∂L/∂α_s = v_s · ∂L/∂a             ∂L/∂v_s = α_s ∂L/∂a
    α = softmax(e)        ∂L/∂e = (diag(α) - α αᵀ) ∂L/∂α
    e_s = score(q, k_s)   ∂L/∂q = Σ_s ∂L/∂e_s ∂e_s/∂q       ∂L/∂k_s = ∂L/∂e_s ∂e_s/∂k_s
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from seqloom.analysis.gradients import (
    AttentionGradients,
    LossGradients,
    check_no_ensemble,
    differentiate_output,
)
from seqloom.analysis.output import (
    check_has_source,
    check_step,
    decode_output,
    no_attention_error,
    source_labels,
    to_plain,
)
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import ConfigError
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.models.interface import DecoderModule, Memory
from seqloom.models.step_description import PositionLabels, StepDescription, TracedValue
from seqloom.nn.formulas import indexed, indexed_layer
from seqloom.nn.multihead import AttentionFormulas
from seqloom.text.vocabulary import SPECIAL_TOKENS, START

BEST_TOKENS = 5
"""Number of most probable tokens in an explanation."""


@dataclass(frozen=True)
class TokenProbability:
    """A token and its probability at the explained step.

    The probability is None for `Explanation.previous`, the token that the decoder reads: this step
    does not predict that token.
    """

    piece: str
    id: int
    probability: float | None = None


@dataclass(frozen=True)
class Explanation:
    """Explanation of one decoder step.

    source:   source pieces; empty for a language model
    output:   pieces of the complete output
    step:     the explained position of the output, counted from 1
    previous: token that the decoder reads at this step: START, or the previous output token.
              None for the lecture example, a calculation of self-attention without tokens
    answer:   token of the output at this step; None for the lecture example
    best:     the most probable tokens, best first
    layer:    layer of the explained attention head, counted from 1. None if the decoder has no
              attention, and for the lecture example
    head:     number of this head in its layer, counted from 1. None in the same cases
    parts:    all values, in the order of computation
    """

    source: tuple[str, ...]
    output: tuple[str, ...]
    step: int
    previous: TokenProbability | None
    answer: TokenProbability | None
    best: tuple[TokenProbability, ...]
    layer: int | None
    head: int | None
    parts: tuple[TracedValue, ...]

    def find(self, name: str, section: str | None = None) -> TracedValue:
        """Return the first value with this name.

        section: section in which to search. Default: all sections.
        """
        return next(
            value for value in self.parts if value.name == name and section in (None, value.section)
        )

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON.

        The key of the section of a value is "chapter". Infinite values, such as logits of impossible
        tokens, are None.
        """
        fields = {name: value for name, value in vars(self).items() if name != "parts"}
        parts = [
            {
                "chapter": value.section,
                "name": value.name,
                "formula": value.formula,
                "note": value.note,
                "shape": list(value.shape),
                "labels": list(value.labels),
                "values": _replace_infinite(value.values.tolist()),
            }
            for value in self.parts
        ]
        return to_plain(fields) | {"parts": parts}


def _replace_infinite(value: Any) -> Any:
    if isinstance(value, list):
        return [_replace_infinite(each) for each in value]
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class HeadSelection:
    """The attention head to explain.

    layer: number of the layer, from 1. Default: None, the top layer.
    head:  number of the head in this layer, from 1. Default: None, the first head.
    """

    layer: int | None = None
    head: int | None = None


def explain(
    run: Run,
    text: str,
    step: int,
    *,
    target: str | None = None,
    focus: HeadSelection | None = None,
    decoding: DecodingConfig | None = None,
) -> Explanation:
    """Explain how a run computes one token of its output.

    text:     source text; for a language model, the text to complete
    step:     position of the token in the output, counted from 1
    target:   output to explain. Default: the output that the search returns for the text.
    focus:    attention head to explain. Default: the first head of the top layer.
    decoding: options of the search. Default: the options of the run.
    """
    output = decode_output(run, text, target, decoding)
    check_step(step, output)
    prepared = run.task.prepare(run.languages.add_tag([text], None)[0])
    with torch.inference_mode():
        memory = run.predictor.encode([prepared])
        inputs = (START, *output.tokens[: step - 1])
        labels = PositionLabels(
            source_labels(output, memory.mask.shape[1]),
            (SPECIAL_TOKENS[START], *output.pieces[: step - 1]),
        )
        explained = explain_step(run.model.decoder, memory, inputs, labels, focus)
    probabilities = explained.probabilities
    token = output.tokens[step - 1]
    best = probabilities.topk(min(BEST_TOKENS, len(probabilities)))
    [previous_piece, piece, *best_pieces] = _pieces(
        run, [inputs[-1], token, *best.indices.tolist()]
    )
    return Explanation(
        source=labels.source,
        output=output.pieces,
        step=step,
        previous=TokenProbability(previous_piece, inputs[-1]),
        answer=TokenProbability(piece, token, float(probabilities[token])),
        best=tuple(map(TokenProbability, best_pieces, best.indices.tolist(), best.values.tolist())),
        layer=explained.layer,
        head=explained.head,
        parts=explained.parts,
    )


@dataclass(frozen=True)
class ExplainedStep:
    """The values of one decoder step.

    parts:         all values, in the order of computation
    probabilities: (V,) probabilities of the next token, on the CPU
    layer, head:   the explained attention head, counted from 1; None if the decoder has no
                   attention
    """

    parts: tuple[TracedValue, ...]
    probabilities: Tensor
    layer: int | None
    head: int | None


def explain_step(
    decoder: DecoderModule,
    memory: Memory,
    inputs: Sequence[int],
    labels: PositionLabels,
    focus: HeadSelection | None = None,
) -> ExplainedStep:
    """Explain the decoder step that follows these inputs.

    memory: encoder output of one source
    inputs: START and the tokens before the step
    """
    layer, head = select_head(decoder, focus or HeadSelection())
    tokens = torch.tensor([list(inputs)], device=memory.mask.device)  # (1, t)
    description = StepDescription(tokens, labels, (layer or 1) - 1, (head or 1) - 1)
    probabilities = decoder.describe_step(memory, description)
    return ExplainedStep(tuple(description.parts), probabilities.cpu(), layer, head)


def select_head(decoder: DecoderModule, focus: HeadSelection) -> tuple[int | None, int | None]:
    """Return the layer and the head to explain, counted from 1.

    Both are None if the decoder has no attention. Raises ConfigError if `focus` names a layer or a
    head that the decoder does not have.
    """
    layers, heads = decoder.attention_heads
    if not layers:
        requested = [name for name in ("layer", "head") if getattr(focus, name) is not None]
        if requested:
            raise ConfigError(
                f"this decoder has no attention, so there is no {requested[0]} to choose: omit "
                f"--{requested[0]}, or train with model.decoder.attention.kind=attention"
            )
        return None, None
    layer = layers if focus.layer is None else focus.layer
    head = 1 if focus.head is None else focus.head
    for name, number, count in (("layer", layer, layers), ("head", head, heads)):
        if not 1 <= number <= count:
            valid = f"1 to {count}" if count > 1 else "1"
            raise ConfigError(
                f"there is no attention {name} {number}; this decoder has {count}: "
                f"choose --{name} {valid}"
            )
    return layer, head


def _pieces(run: Run, tokens: Sequence[int]) -> list[str]:
    """Return the text of each token id. Special tokens such as END have a text, too."""
    pieces = run.task.target_tokenizer.pieces
    return [
        SPECIAL_TOKENS[id_] if id_ < len(SPECIAL_TOKENS) else pieces([id_])[0] for id_ in tokens
    ]


def explain_backward(
    run: Run,
    text: str,
    step: int,
    *,
    target: str | None = None,
    focus: HeadSelection | None = None,
    decoding: DecodingConfig | None = None,
) -> Explanation:
    """Explain how the loss of one prediction is differentiated through attention.

    step:     position of the prediction in the output, counted from 1
    target:   output whose loss is differentiated. Default: the output that the search returns.
    focus:    attention head to explain. Default: the first head of the top layer.
    decoding: options of the search. Default: the options of the run.
    """
    selected = select_cross_attention(run, focus or HeadSelection())
    output, gradients = differentiate_output(run, text, target, step, decoding)
    return describe_backward(output, gradients, step, selected)


def select_cross_attention(run: Run, focus: HeadSelection) -> HeadSelection:
    """Return the layer and the head to explain, both counted from 1.

    If the layer or the head in `focus` is None, its default is returned: the top layer, or the
    first head. Raises ConfigError if the decoder does not attend to a source, or has no such layer
    or head.
    """
    check_has_source(run)
    check_no_ensemble(run.model)
    if not run.model.decoder.source_attentions():
        raise no_attention_error(run)
    return HeadSelection(*select_head(run.model.decoder, focus))


def describe_backward(
    output: Prediction, gradients: LossGradients, step: int, focus: HeadSelection
) -> Explanation:
    """Explain the gradients of the loss of one output token, at one attention head.

    output:    the output that contains the token
    gradients: gradients of the loss of this token
    step:      position of the token in the output, counted from 1
    focus:     layer and head to explain, both counted from 1
    """
    tokens = (START, *output.tokens)
    pieces = (SPECIAL_TOKENS[START], *output.pieces)
    probability = math.exp(-float(gradients.losses[0, step - 1]))
    labels = source_labels(output, gradients.memory.shape[1])
    return Explanation(
        source=labels,
        output=output.pieces,
        step=step,
        previous=TokenProbability(pieces[step - 1], tokens[step - 1]),
        answer=TokenProbability(pieces[step], tokens[step], probability),
        best=(),
        layer=focus.layer,
        head=focus.head,
        parts=explain_gradients(gradients, labels, step, focus),
    )


def explain_gradients(
    gradients: LossGradients, labels: tuple[str, ...], step: int, focus: HeadSelection
) -> tuple[TracedValue, ...]:
    """Return the loss of one decoder step and its gradients, each with its name and formula.

    The gradients at the decoder states are included only if the decoder is recurrent. If the batch
    has several rows, only the first row is used.

    gradients: gradients of the loss of this step
    labels:    tokens at the source positions
    step:      counted from 1
    focus:     layer and head, both counted from 1
    """
    assert focus.layer is not None
    assert focus.head is not None
    formula = f"L = -log p({indexed('y', step)})"
    loss = TracedValue("loss", "loss", formula, gradients.losses[0, step - 1])
    attention = gradients.attention[focus.layer - 1]
    parts = _attention_gradients(attention, labels, step, focus.head - 1)
    return (loss, *parts, *_state_gradients(gradients, step))


def _attention_gradients(
    gradients: AttentionGradients, labels: tuple[str, ...], step: int, head: int
) -> list[TracedValue]:
    row, score, is_hard = step - 1, gradients.attention.score, gradients.is_hard
    formulas = AttentionFormulas(gradients.attention, head)
    parts: list[TracedValue] = []

    def add(name: str, formula: str, values: Tensor, is_per_token: bool, note: str = "") -> None:
        section = "backward pass through attention"
        tokens = labels if is_per_token else ()
        parts.append(TracedValue(section, name, formula, values.detach().cpu(), tokens, note))

    read = f"∂L/∂{indexed('a', step)}"
    add("context", read, gradients.context[0, row], False, "from everything computed from a")
    if not formulas.is_single:
        formula = f"∂L/∂r = {formulas.head_gradient(read)}"
        add("head output", formula, gradients.read[0, head, row], False)
        read = "∂L/∂r"
    values, note = gradients.values[0, head, row], f"v = {formulas.value('h')}"
    add("values", f"∂L/∂v = α {read}", values, True, note)
    weights = gradients.forward.weights[0, head, row]
    add("forward weights", f"α = {formulas.weights}", weights, True)
    add("weights", f"∂L/∂α = v · {read}", gradients.weights[0, head, row], True)
    hard = "the selected key stays the same if e changes a little: no gradient" if is_hard else ""
    scores = f"∂L/∂e = {formulas.score_gradient}"
    add("scores", scores, gradients.scores[0, head, row], True, hard)
    hard_formula = "0, because ∂L/∂e = 0" if is_hard else ""
    query, note = hard_formula or score.query_gradient, "" if is_hard else score.gradient_note
    add("query", f"∂L/∂q = {query}", gradients.queries[0, head, row], False, note)
    key, keys = hard_formula or score.key_gradient, gradients.keys[0, head, row]
    add("keys", f"∂L/∂k = {key}", keys, True, "the part of this step")
    return parts


def _state_gradients(gradients: LossGradients, step: int) -> Iterator[TracedValue]:
    """Describe the gradients at the decoder states after this step and after the previous step.

    The states are those of the recurrent layer from which attention computes its queries.
    """
    for level, layer in enumerate(gradients.decoder, start=1):
        if "query" not in layer.parts:
            continue
        for position in (step, step - 1):
            symbol, following = (
                indexed_layer("s", level, len(gradients.decoder), index)
                for index in (position, position + 1)
            )
            query = indexed("q", position + 1 if layer.query == "previous" else position)
            chains = {
                "output": "through the readout and higher layers",
                "recurrence": f"∂L/∂{following} · ∂{following}/∂{symbol}",
                "query": f"∂L/∂{query} · ∂{query}/∂{symbol}",
            }
            section = f"state {symbol}"
            names = [name for name, part in layer.parts.items() if bool(part[0, position].any())]
            for name in names:
                values = layer.parts[name][0, position].detach().cpu()
                yield TracedValue(section, name, chains[name], values)
            total = layer.total[0, position].detach().cpu()
            formula = f"∂L/∂{symbol} = {' + '.join(names) or '0'}"
            yield TracedValue(section, "total", formula, total)
