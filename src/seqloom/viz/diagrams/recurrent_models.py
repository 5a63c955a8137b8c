"""Draw recurrent networks with the numbers of a trained model: unrolled, or as encoder and decoder."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from seqloom.analysis.forward_trace import ForwardTrace, LayerStates
from seqloom.core.errors import ConfigError
from seqloom.nn.formulas import indexed
from seqloom.viz.attention_matrix import draw_cell
from seqloom.viz.drawing import (
    LINE_HEIGHT,
    Drawing,
    Svg,
    box_height,
    format_entry,
    format_vector_start,
    title_text,
    token_label,
    widest,
)

_CELL_NAMES = {"rnn": "vanilla RNN", "gru": "GRU", "lstm": "LSTM"}
_UNROLLED_GAP, _UNROLLED_ROW_GAP = 44, 30
_GAP = 18
_ROW_GAP = 26
_CELL_HEIGHT = 22
_LANE = 14
"""Width of the space beside a decoder input, for the arrow from the context to the state."""
_BOTTLENECK = 70
"""Width of the gap between encoder and decoder, which the initial state crosses."""
_ARROWS = ("→", "←")


def draw_encoder_decoder(trace: ForwardTrace) -> Svg:
    """Draw a recurrent encoder and decoder with their hidden vectors and output probabilities.

    The encoder is on the left, the decoder on the right. Boxes show the first numbers of a vector. If
    the encoder reads in both directions, a box shows the vectors of both directions.

    If the model has attention, a matrix below the encoder shows the weights. It has a column per
    source token and a row per decoder step. A line leads from each row to the context vector of
    this step. Arrows lead from the context vector to the state or the output that is computed from
    it.
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
    directions = _lowest_layer(trace.encoder)
    encoder_boxes = _encoder_boxes(directions)
    decoder_boxes = _vector_boxes("s", trace.decoder[0].states.tolist())
    lane = _LANE if trace.readers & {"state", "next state"} else 0.0
    layout = _Layout.of(
        columns=(len(sources), len(inputs)),
        box_width=max(64.0, widest([*sources, *inputs, *outputs]) + 16 + lane),
        label_width=0.0 if trace.attention is None else widest(outputs) + 16,
        state_lines=max(len(encoder_boxes[0]), len(decoder_boxes[0])),
    )
    drawing = Drawing(_title(trace), _description(sources, outputs, trace))
    _draw_states(drawing, layout, layout.encoder_left, sources, encoder_boxes, 0.0)
    _draw_states(drawing, layout, layout.decoder_left, inputs, decoder_boxes, lane)
    _draw_recurrence(drawing, layout, layout.encoder_left, len(sources), _arrows(directions))
    _draw_recurrence(drawing, layout, layout.decoder_left, len(inputs), "→")
    _draw_initial_state(drawing, layout)
    _draw_outputs(drawing, layout, outputs, trace.probabilities.tolist())
    below = layout.token_bottom
    if trace.attention is not None and trace.contexts is not None:
        contexts = _vector_boxes("c", trace.contexts.tolist(), count=2)
        below = _draw_contexts(drawing, layout, contexts, trace)
        below = _draw_weights(drawing, layout, trace.attention.tolist(), outputs, below)
    below += 20
    encoder_name = directions[0].name if len(directions) == 1 else "layer 1, both directions"
    for left, side, cell, name in (
        (layout.encoder_left, "encoder", trace.encoder_cell, encoder_name),
        (layout.decoder_left, "decoder", trace.decoder_cell, trace.decoder[0].name),
    ):
        drawing.text(left, below, f"{side}: {_CELL_NAMES[cell]}, {name}", "start", "soft")
    if trace.attention is None:
        drawing.text(
            layout.encoder_left,
            below + LINE_HEIGHT,
            f"s₀ contains all information about the source: {len(trace.initial)} numbers.",
            "start",
            "soft",
        )
    return drawing.render()


@dataclass(frozen=True)
class _Layout:
    """Positions of rows and columns in pixels.

    width:        width of a box
    encoder_left: left edge of the first source token
    decoder_left: left edge of the first decoder input
    state_top:    upper edge of the hidden vectors
    state_bottom: lower edge of the hidden vectors
    """

    width: float
    encoder_left: float
    encoder_right: float
    decoder_left: float
    output_top: float
    state_top: float
    state_bottom: float

    @classmethod
    def of(
        cls, columns: tuple[int, int], box_width: float, label_width: float, state_lines: int
    ) -> "_Layout":
        """Compute the positions of all rows and columns from the sizes of their content.

        columns:     number of source tokens, number of decoder inputs
        label_width: width of the labels to the left of the attention weights, in pixels
        state_lines: number of text lines in the box of a hidden vector
        """
        encoder_right = label_width + (box_width + _GAP) * columns[0] - _GAP
        state_top = 40 + box_height(2) + _ROW_GAP
        return cls(
            width=box_width,
            encoder_left=label_width,
            encoder_right=encoder_right,
            decoder_left=encoder_right + _BOTTLENECK,
            output_top=40,
            state_top=state_top,
            state_bottom=state_top + box_height(state_lines),
        )

    @property
    def pitch(self) -> float:
        """Distance from one column to the next, in pixels."""
        return self.width + _GAP

    @property
    def state_middle(self) -> float:
        return (self.state_top + self.state_bottom) / 2

    @property
    def token_top(self) -> float:
        return self.state_bottom + _ROW_GAP

    @property
    def token_bottom(self) -> float:
        return self.token_top + box_height(1)


def _lowest_layer(layers: Sequence[LayerStates]) -> Sequence[LayerStates]:
    """Return the states of the lowest layer: one item per direction in which the layer reads."""
    return layers[:2] if layers[0].name.endswith(_ARROWS) else layers[:1]


def _arrows(directions: Sequence[LayerStates]) -> str:
    return "→" if len(directions) == 1 else "".join(_ARROWS)


def _encoder_boxes(directions: Sequence[LayerStates]) -> list[list[str]]:
    """Return the text lines of each encoder box.

    The first line is a name such as h₁. The other lines are the first numbers of each vector.
    """
    if len(directions) == 1:
        return _vector_boxes("h", directions[0].states.tolist())
    boxes = []
    both = zip(*(layer.states.tolist() for layer in directions), strict=True)
    for number, vectors in enumerate(both, start=1):
        lines = [indexed("h", number)]
        for arrow, vector in zip(_ARROWS, vectors, strict=True):
            first, *others = format_vector_start(vector, 2)
            lines += [f"{arrow} {first}", *others]
        boxes.append(lines)
    return boxes


def _vector_boxes(symbol: str, vectors: list[list[float]], count: int = 3) -> list[list[str]]:
    """Return the text lines of a box for each vector: its name, then its first `count` numbers."""
    return [
        [indexed(symbol, number), *format_vector_start(vector, count)]
        for number, vector in enumerate(vectors, start=1)
    ]


def _draw_states(
    drawing: Drawing,
    layout: _Layout,
    left: float,
    tokens: list[str],
    boxes: list[list[str]],
    lane: float,
) -> None:
    """Draw a row of tokens and, above each token, the box of its hidden vector.

    lane: width in pixels of the space to the left of each token. Arrows from the context vectors
          to the hidden vectors are drawn there. 0 if there are no such arrows
    """
    height = layout.state_bottom - layout.state_top
    for number, (token, lines) in enumerate(zip(tokens, boxes, strict=True)):
        x = left + layout.pitch * number
        centre = x + (lane + layout.width) / 2
        drawing.box(x, layout.state_top, layout.width, lines, "state", height)
        drawing.box(x + lane, layout.token_top, layout.width - lane, [token])
        drawing.arrow((centre, layout.token_top), (centre, layout.state_bottom))


def _draw_recurrence(
    drawing: Drawing, layout: _Layout, left: float, columns: int, arrows: str
) -> None:
    """Draw the arrows between neighbouring hidden vectors.

    arrows: "→" for arrows to the right only, "→←" for arrows in both directions
    """
    shift = 10 * (len(arrows) - 1)
    for number in range(1, columns):
        x = left + layout.pitch * number
        middle = layout.state_middle
        drawing.arrow((x - _GAP, middle - shift), (x, middle - shift), strong=True)
        if "←" in arrows:
            drawing.arrow((x, middle + shift), (x - _GAP, middle + shift), strong=True)


def _draw_initial_state(drawing: Drawing, layout: _Layout) -> None:
    """Draw the arrow from the last encoder state to the first decoder state."""
    middle = layout.state_middle
    drawing.arrow(
        (layout.encoder_right, middle), (layout.decoder_left, middle), strong=True, width=3
    )
    drawing.text(layout.decoder_left - _BOTTLENECK / 2, middle - 14, "s₀", style="bold")


def _draw_outputs(
    drawing: Drawing, layout: _Layout, outputs: list[str], probabilities: list[float]
) -> None:
    for number, (label, probability) in enumerate(zip(outputs, probabilities, strict=True)):
        x = layout.decoder_left + layout.pitch * number
        lines = [label, f"p {probability:.2f}"]
        bottom = drawing.box(x, layout.output_top, layout.width, lines, "result")
        drawing.arrow((x + layout.width / 2, layout.state_top), (x + layout.width / 2, bottom))


def _draw_contexts(
    drawing: Drawing, layout: _Layout, contexts: list[list[str]], trace: ForwardTrace
) -> float:
    """Draw the context vectors below the decoder inputs.

    Arrows lead from each context vector to the states or outputs that are computed from it. Returns
    the y position of the lower edge of the context vectors.
    """
    top = layout.token_bottom + _ROW_GAP
    bottom = top
    output_middle = layout.output_top + box_height(2) / 2
    for number, lines in enumerate(contexts):
        x = layout.decoder_left + layout.pitch * number
        right = x + layout.width
        bottom = drawing.box(x, top, layout.width, lines)
        if "state" in trace.readers:
            drawing.arrow((x + _LANE / 2, top), (x + _LANE / 2, layout.state_bottom))
        if "next state" in trace.readers and number + 1 < len(contexts):
            turn, lane = top - _ROW_GAP / 2, x + layout.pitch + _LANE / 2
            start = (right - _LANE / 2, top)
            drawing.arrow(start, (start[0], turn), (lane, turn), (lane, layout.state_bottom))
        if "output" in trace.readers:
            start, gap = (right, top + LINE_HEIGHT), right + _GAP / 2
            drawing.arrow(start, (gap, start[1]), (gap, output_middle), (right, output_middle))
    return bottom


def _draw_weights(
    drawing: Drawing, layout: _Layout, weights: list[list[float]], outputs: list[str], top: float
) -> float:
    """Draw the attention weights as a matrix below the encoder.

    Each row belongs to a decoder step. A line leads from the row to the context vector of the step.
    Returns the y position of the lower edge of the matrix.

    top: y position of the lower edge of the context vectors
    """
    caption = "attention weights α: one row for each output token"
    drawing.text(layout.encoder_left, top - LINE_HEIGHT / 2, caption, "start", "soft")
    first = top + 12
    for row, (label, row_weights) in enumerate(zip(outputs, weights, strict=True)):
        y = first + _CELL_HEIGHT * row
        middle = y + _CELL_HEIGHT / 2 - 1
        drawing.text(layout.encoder_left - 8, middle, label, "end")
        for column, weight in enumerate(row_weights):
            x = layout.encoder_left + layout.pitch * column
            place = (x, y, layout.width, _CELL_HEIGHT - 2)
            draw_cell(drawing, place, weight, format_entry(weight))
        centre = layout.decoder_left + layout.pitch * row + layout.width / 2
        drawing.arrow((layout.encoder_right, middle), (centre, middle), (centre, top))
    return first + _CELL_HEIGHT * len(outputs)


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
    pitch = width + _UNROLLED_GAP
    states: list[list[float]] = chain.states.tolist()
    text = title_text(" ".join(labels))
    drawing = Drawing(
        f"{chain.name}: {_CELL_NAMES[chain.cell]} with hidden vectors of width {len(states[0])}",
        f"A recurrent network reads the tokens {text} one after the other. Each step computes a "
        "new hidden vector from the token and the previous hidden vector, with the same weights.",
    )
    top = 34.0
    state_top = top + (box_height(2) + _UNROLLED_ROW_GAP if chain.predictions else 0)
    lines = len(format_vector_start(states[0])) + 1
    state_bottom = state_top + box_height(lines)
    token_top = state_bottom + _UNROLLED_ROW_GAP
    middle = (state_top + state_bottom) / 2
    drawing.box(0, middle - box_height(1) / 2, 44, [f"{symbol}₀"], "muted")
    for number, label in enumerate(labels):
        x = 44 + _UNROLLED_GAP + pitch * number
        centre = x + width / 2
        drawing.arrow((x - _UNROLLED_GAP, middle), (x, middle), strong=True, width=2)
        drawing.text(x - _UNROLLED_GAP / 2, middle - 12, "U", style="soft")
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
            drawing.text(centre + 10, state_top - _UNROLLED_ROW_GAP / 2, "V", style="soft")
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
