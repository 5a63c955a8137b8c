"""Explains the backward pass through the attention of one decoder step.

The loss L is -log p of the token that this step predicts. Gradients are listed in the order in
which backpropagation computes them: context vector a, attention values v, attention weights α,
scores e, query q, keys k and, in a recurrent decoder, the states.

    a = Σ α v             ∂L/∂α_s = v_s · ∂L/∂a             ∂L/∂v_s = α_s ∂L/∂a
    α = softmax(e)        ∂L/∂e = (diag(α) - α αᵀ) ∂L/∂α
    e_s = score(q, k_s)   ∂L/∂q = Σ_s ∂L/∂e_s ∂e_s/∂q       ∂L/∂k_s = ∂L/∂e_s ∂e_s/∂k_s
"""

import math

from torch import Tensor, nn

from seqloom.analysis.attention import check_has_source, no_attention_error
from seqloom.analysis.explain import formulas
from seqloom.analysis.explain.explainer import count_attention_heads, select_head
from seqloom.analysis.explain.explanation import (
    Explanation,
    HeadSelection,
    TokenProbability,
    TracedValue,
)
from seqloom.analysis.gradient_flow import check_no_ensemble
from seqloom.analysis.loss_gradient_norms import differentiate_output, source_labels
from seqloom.analysis.loss_gradients import AttentionGradients, LossGradients
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.models.interface import DecoderModule
from seqloom.models.labels import LabelDecoder
from seqloom.models.recurrent import RecurrentDecoder
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.text.vocabulary import SPECIAL_TOKENS, START

PARTS = {
    "output": "through the readout and higher layers",
    "recurrence": "through the cell of the next step",
    "query": "through the attention query",
}
"""The paths on which a decoder state influences the loss (see `analysis/loss_gradients.py`)."""


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
    return describe_backward(run.model.decoder, output, gradients, step, selected)


def describe_backward(
    decoder: DecoderModule,
    output: Prediction,
    gradients: LossGradients,
    step: int,
    focus: HeadSelection,
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
    labels = source_labels(output, gradients)
    return Explanation(
        source=labels,
        output=output.pieces,
        step=step,
        previous=TokenProbability(pieces[step - 1], tokens[step - 1]),
        answer=TokenProbability(pieces[step], tokens[step], probability),
        best=(),
        layer=focus.layer,
        head=focus.head,
        parts=explain_gradients(decoder, gradients, labels, step, focus),
    )


def select_cross_attention(run: Run, focus: HeadSelection) -> HeadSelection:
    """Return the layer and the head to explain, both counted from 1.

    If the layer or the head in `focus` is None, its default is returned: the top layer, or the
    first head. Raises ConfigError if the decoder does not attend to a source, or has no such layer
    or head.
    """
    check_has_source(run)
    match run.model.decoder:
        case RecurrentDecoder(attention=None) | LabelDecoder():
            raise no_attention_error(run)
        case decoder:
            check_no_ensemble(run.model)
            if count_attention_heads(decoder) == (0, 0):
                raise no_attention_error(run)
            return HeadSelection(*select_head(decoder, focus))


def explain_gradients(
    decoder: DecoderModule,
    gradients: LossGradients,
    labels: tuple[str, ...],
    step: int,
    focus: HeadSelection,
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
    parts = [
        TracedValue(
            "loss",
            "loss",
            f"L = -log p({formulas.indexed('y', step)})",
            gradients.losses[0, step - 1],
        )
    ]
    attention = gradients.attention[focus.layer - 1]
    parts += _attention_gradients(attention, labels, step, focus.head - 1)
    if isinstance(decoder, RecurrentDecoder):
        parts += _state_gradients(decoder, gradients, step)
    return tuple(parts)


def _attention_gradients(
    gradients: AttentionGradients, labels: tuple[str, ...], step: int, head: int
) -> list[TracedValue]:
    attention, row = gradients.attention, step - 1
    score, width = attention.score, attention.query_head_width
    parts: list[TracedValue] = []

    def add(name: str, formula: str, values: Tensor, is_per_token: bool, note: str = "") -> None:
        section = "backward pass through attention"
        tokens = labels if is_per_token else ()
        parts.append(TracedValue(section, name, formula, values.detach().cpu(), tokens, note))

    read = f"∂L/∂{formulas.indexed('a', step)}"
    add("context", read, gradients.context[0, row], False, "from everything computed from a")
    if not (attention.heads == 1 and isinstance(attention.output_projection, nn.Identity)):
        add(
            "head output",
            f"∂L/∂r = {_head_formula(attention, read, head)}",
            gradients.read[0, head, row],
            False,
        )
        read = "∂L/∂r"
    forward = gradients.forward
    values = f"v = {formulas.value(attention, 'h', head)}"
    add("values", f"∂L/∂v = α {read}", gradients.values[0, head, row], True, values)
    weights = f"α = {formulas.weights(attention)}"
    add("forward weights", weights, forward.weights[0, head, row], True)
    add("weights", f"∂L/∂α = v · {read}", gradients.weights[0, head, row], True)
    scores = f"∂L/∂e = {formulas.score_gradients(attention)}"
    hard = (
        "the selected key stays the same if e changes a little: no gradient"
        if gradients.is_hard
        else ""
    )
    add("scores", scores, gradients.scores[0, head, row], True, hard)
    hard_formula = "0, because ∂L/∂e = 0" if gradients.is_hard else ""
    query = hard_formula or formulas.query_gradient(score, width)
    note = "" if gradients.is_hard else formulas.key_gradient_note(score)
    add("query", f"∂L/∂q = {query}", gradients.queries[0, head, row], False, note)
    key = hard_formula or formulas.key_gradient(score, width)
    add("keys", f"∂L/∂k = {key}", gradients.keys[0, head, row], True, "the part of this step")
    return parts


def _head_formula(attention: MultiHeadAttention, context: str, head: int) -> str:
    """Formula of the gradient at the output of one head, for example (Woᵀ ∂L/∂a₃)[1…16].

    context: symbol of the gradient at the context vector, for example ∂L/∂a₃
    head:    counted from 0
    """
    projects = not isinstance(attention.output_projection, nn.Identity)
    formula = f"Woᵀ {context}" if projects else context
    if attention.heads == 1:
        return formula
    width = attention.value_width // attention.heads
    inner = f"({formula})" if projects else formula
    return f"{inner}[{head * width + 1}…{(head + 1) * width}]"


def _state_gradients(
    decoder: RecurrentDecoder, gradients: LossGradients, step: int
) -> list[TracedValue]:
    """Describe the gradients at the decoder states after this step and after the previous step.

    The states are those of the layer from which attention computes its queries.
    """
    level = decoder.query_layer
    layer = gradients.decoder[level]
    parts = []
    for position in (step, step - 1):
        symbol = formulas.indexed_layer("s", level + 1, len(decoder.layers), position)
        section = f"state {symbol}"
        following = formulas.indexed_layer("s", level + 1, len(decoder.layers), position + 1)
        is_previous = decoder.query_is_previous_state
        query = formulas.indexed("q", position + 1 if is_previous else position)
        chains = {
            "output": PARTS["output"],
            "recurrence": f"∂L/∂{following} · ∂{following}/∂{symbol}",
            "query": f"∂L/∂{query} · ∂{query}/∂{symbol}",
        }
        names = [name for name, part in layer.parts.items() if bool(part[0, position].any())]
        for name in names:
            values = layer.parts[name][0, position].detach().cpu()
            parts.append(TracedValue(section, name, chains[name], values))
        total = layer.total[0, position].detach().cpu()
        formula = f"∂L/∂{symbol} = {' + '.join(names) or '0'}"
        parts.append(TracedValue(section, "total", formula, total))
    return parts
