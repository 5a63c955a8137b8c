"""Draw an encoder and a decoder unrolled over a sentence, with the numbers of a real run."""

from seqloom.analysis.explain.formulas import indexed
from seqloom.analysis.forward_trace import ForwardTrace
from seqloom.core.errors import ConfigError
from seqloom.viz.diagrams.svg import (
    LINE_HEIGHT,
    Drawing,
    Svg,
    box_height,
    format_vector_start,
    token_label,
    widest,
)
from seqloom.viz.diagrams.unrolled_rnn import CELL_NAMES

_GAP = 18
_ROW_GAP = 26
_CELL_HEIGHT = 22
_BOTTLENECK = 70
"""Width of the gap between encoder and decoder, which the initial state crosses."""


def draw_encoder_decoder(trace: ForwardTrace) -> Svg:
    """Draw hidden vectors, initial state, attention weights and output probabilities.

    The encoder is on the left, the decoder on the right. If the model has attention, a matrix above
    the encoder shows the weights: its columns are the source tokens, its rows the decoder steps.
    """
    if trace.encoder_cell is None:
        raise ConfigError(
            "a language model has no encoder. Draw it as an unrolled RNN, or use a run that reads "
            "a source."
        )
    sources, inputs, outputs = (
        [token_label(piece) for piece in pieces]
        for pieces in (trace.source, trace.inputs, trace.output)
    )
    width = max(64.0, widest([*sources, *inputs, *outputs]) + 16)
    pitch = width + _GAP
    state_rows = [trace.encoder[0].states.tolist(), trace.decoder[0].states.tolist()]
    lines = 1 + len(format_vector_start(state_rows[0][0]))
    matrix_height = 0.0 if trace.attention is None else _CELL_HEIGHT * (len(outputs) + 1.5)
    row_label = 0.0 if trace.attention is None else widest(outputs) + 16
    state_top = 40 + max(matrix_height, box_height(2) + _ROW_GAP)
    state_bottom = state_top + box_height(lines)
    token_top = state_bottom + _ROW_GAP
    drawing = Drawing(_title(trace), _description(sources, outputs, trace))
    encoder_left = row_label
    decoder_left = encoder_left + pitch * len(sources) - _GAP + _BOTTLENECK
    for left, labels, states, symbol in (
        (encoder_left, sources, state_rows[0], "h"),
        (decoder_left, inputs, state_rows[1], "s"),
    ):
        for number, label in enumerate(labels):
            x = left + pitch * number
            content = [indexed(symbol, number + 1), *format_vector_start(states[number])]
            drawing.box(x, state_top, width, content, "state")
            drawing.box(x, token_top, width, [label])
            drawing.arrow((x + width / 2, token_top), (x + width / 2, state_bottom))
            if number:
                middle = (state_top + state_bottom) / 2
                drawing.arrow((x - _GAP, middle), (x, middle), strong=True)
    _draw_initial_state(drawing, decoder_left, (state_top + state_bottom) / 2)
    for number, (label, probability) in enumerate(
        zip(outputs, trace.probabilities.tolist(), strict=True)
    ):
        x = decoder_left + pitch * number
        bottom = drawing.box(
            x,
            state_top - _ROW_GAP - box_height(2),
            width,
            [label, f"p {probability:.2f}"],
            "result",
        )
        drawing.arrow((x + width / 2, state_top), (x + width / 2, bottom))
    if trace.attention is not None:
        _draw_attention(drawing, trace.attention.tolist(), outputs, encoder_left, pitch, width)
    below = token_top + box_height(1) + 20
    for left, side, cell, layer in (
        (encoder_left, "encoder", trace.encoder_cell, trace.encoder[0]),
        (decoder_left, "decoder", trace.decoder_cell, trace.decoder[0]),
    ):
        drawing.text(left, below, f"{side}: {CELL_NAMES[cell]}, {layer.name}", "start", "soft")
    if trace.attention is None:
        drawing.text(
            encoder_left,
            below + LINE_HEIGHT,
            f"s₀ contains all information about the source: {len(trace.initial)} numbers.",
            "start",
            "soft",
        )
    return drawing.render()


def _draw_initial_state(drawing: Drawing, decoder_left: float, middle: float) -> None:
    """Draw the arrow from the last encoder state to the first decoder state."""
    drawing.arrow(
        (decoder_left - _BOTTLENECK, middle), (decoder_left, middle), strong=True, width=3
    )
    drawing.text(decoder_left - _BOTTLENECK / 2, middle - 14, "s₀", css_class="bold")


def _draw_attention(
    drawing: Drawing,
    weights: list[list[float]],
    outputs: list[str],
    left: float,
    pitch: float,
    width: float,
) -> None:
    top = 34.0
    drawing.text(left, top, "attention weights α of each output token", "start", "soft")
    for row, (label, row_weights) in enumerate(zip(outputs, weights, strict=True)):
        y = top + 12 + _CELL_HEIGHT * row
        drawing.text(left - 8, y + _CELL_HEIGHT / 2, label, "end")
        for column, weight in enumerate(row_weights):
            drawing.shaded_cell(left + pitch * column, y, width, _CELL_HEIGHT - 2, weight)


def _title(trace: ForwardTrace) -> str:
    kind = "without attention" if trace.attention is None else "with attention"
    return f"Encoder-decoder {kind}"


def _description(sources: list[str], outputs: list[str], trace: ForwardTrace) -> str:
    probabilities = ", ".join(
        f"{label} {probability:.2f}"
        for label, probability in zip(outputs, trace.probabilities.tolist(), strict=True)
    )
    return (
        f"The encoder reads {' '.join(sources)}. The initial state s₀ of the decoder is computed "
        f"from its final state. Output tokens with their probabilities: {probabilities}."
    )
