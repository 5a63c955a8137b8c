"""Draw a recurrent network unrolled over the tokens of a text."""

from dataclasses import dataclass

from torch import Tensor

from seqloom.analysis.forward_trace import ForwardTrace
from seqloom.nn.formulas import indexed
from seqloom.viz.drawing import (
    Drawing,
    Svg,
    box_height,
    format_vector_start,
    title_text,
    token_label,
    widest,
)

CELL_NAMES = {"rnn": "vanilla RNN", "gru": "GRU", "lstm": "LSTM"}
_GAP = 44
_ROW_GAP = 30


@dataclass(frozen=True)
class _Chain:
    """A recurrent layer that reads a text: its tokens, hidden states and predictions.

    predictions: empty for an encoder
    """

    name: str
    cell: str
    tokens: tuple[str, ...]
    states: Tensor  # (N, D)
    predictions: tuple[str, ...]


def draw_unrolled_rnn(trace: ForwardTrace) -> Svg:
    """Draw every step of the lowest recurrent layer: token, hidden vector and prediction.

    For a language model, the layer belongs to the decoder. The prediction of a step is the next
    token of the text with its probability. For other models, the layer belongs to the encoder, and
    the drawing has no predictions.
    """
    chain = _chain(trace)
    labels = [token_label(token) for token in chain.tokens]
    symbol = "s" if chain.predictions else "h"
    width = max(70.0, widest([*labels, *chain.predictions]) + 20)
    pitch = width + _GAP
    states: list[list[float]] = chain.states.tolist()
    text = title_text(" ".join(labels))
    drawing = Drawing(
        f"{chain.name}: {CELL_NAMES[chain.cell]} with hidden vectors of width {len(states[0])}",
        f"A recurrent network reads the tokens {text} one after the other. Each step computes a "
        "new hidden vector from the token and the previous hidden vector, with the same weights.",
    )
    top = 34.0
    state_top = top + (box_height(2) + _ROW_GAP if chain.predictions else 0)
    lines = len(format_vector_start(states[0])) + 1
    state_bottom = state_top + box_height(lines)
    token_top = state_bottom + _ROW_GAP
    middle = (state_top + state_bottom) / 2
    drawing.box(0, middle - box_height(1) / 2, 44, [f"{symbol}₀"], "muted")
    for number, label in enumerate(labels):
        x = 44 + _GAP + pitch * number
        centre = x + width / 2
        drawing.arrow((x - _GAP, middle), (x, middle), strong=True, width=2)
        drawing.text(x - _GAP / 2, middle - 12, "U", style="soft")
        drawing.box(
            x,
            state_top,
            width,
            [indexed(symbol, number + 1), *format_vector_start(states[number])],
            "state",
        )
        drawing.box(x, token_top, width, [label])
        drawing.arrow((centre, token_top), (centre, state_bottom))
        drawing.text(centre + 10, (token_top + state_bottom) / 2, "W", style="soft")
        if chain.predictions:
            drawing.box(x, top, width, chain.predictions[number].split("\n"), "result")
            drawing.arrow((centre, state_top), (centre, top + box_height(2)))
            drawing.text(centre + 10, state_top - _ROW_GAP / 2, "V", style="soft")
    letters = "W, U and V" if chain.predictions else "W and U"
    drawing.text(
        0, token_top + box_height(1) + 24, f"{letters}: the same weights at every step", "start"
    )
    return drawing.render()


def _chain(trace: ForwardTrace) -> _Chain:
    if trace.encoder_cell is not None:
        layer = trace.encoder[0]
        name = f"encoder, {layer.name}"
        return _Chain(name, trace.encoder_cell, trace.source, layer.states, ())
    predictions = tuple(
        f"{token_label(piece)}\n{probability:.2f}"
        for piece, probability in zip(trace.output, trace.probabilities.tolist(), strict=True)
    )
    layer = trace.decoder[0]
    name = f"language model, {layer.name}"
    return _Chain(name, trace.decoder_cell, trace.inputs, layer.states, predictions)
