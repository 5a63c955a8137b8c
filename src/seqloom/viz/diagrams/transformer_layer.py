"""Draw a Transformer layer with the shapes of its weights and of the tensors between its parts."""

from dataclasses import dataclass
from typing import Literal

from torch import nn

from seqloom.core.errors import ConfigError
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.transformer import DecoderLayer, EncoderLayer, FeedForward, Residual
from seqloom.viz.drawing import LINE_HEIGHT, Drawing, Svg, box_height, widest

_CENTRE_GAP = 46
_ARROW = 30
_SKIP = 34
"""Distance of a skip connection from the boxes."""


@dataclass(frozen=True)
class _Sublayer:
    """A sublayer with its residual connection.

    memory: shape of the encoder output that the sublayer reads; "" if it reads no encoder output
    """

    lines: list[str]
    residual: Residual
    memory: str = ""


def draw_transformer_layer(layer: EncoderLayer | DecoderLayer, name: str = "") -> Svg:
    """Draw the sublayers of a Transformer layer from bottom to top, with skip connections.

    B is the batch size, S the source length and T the target length. All other numbers are read
    from the weights of the layer.

    name: title of the picture. Default: "Transformer encoder layer" or "Transformer decoder layer"
    """
    is_decoder = isinstance(layer, DecoderLayer)
    stream = f"B × {'T' if is_decoder else 'S'} × {layer.attention.query_width}"
    sublayers = _sublayers(layer)
    width = widest([line for each in sublayers for line in each.lines]) + 30
    parameters = sum(parameter.numel() for parameter in layer.parameters())
    title = name or f"Transformer {'decoder' if is_decoder else 'encoder'} layer"
    order = "pre-norm" if sublayers[0].residual.pre_norm else "post-norm"
    without_skip = [each.lines[0].split(",")[0] for each in sublayers if not each.residual.skip]
    exception = f", except that of {' and '.join(without_skip)}" if without_skip else ""
    drawing = Drawing(
        f"{title}: {parameters:,} parameters, {order}",
        f"The input of shape {stream} passes through these sublayers: "
        f"{'; '.join(', '.join(each.lines) for each in sublayers)}. Each output is added to its "
        f"input{exception}.",
    )
    left = _SKIP + 14.0
    centre = left + width / 2
    # The layer is computed from bottom to top, as in the literature, and drawn from top to bottom.
    y = 34.0
    drawing.box(left, y, width, [f"output: {stream}"], "result")
    y += box_height(1)
    for each in reversed(sublayers):
        is_top = each is sublayers[-1]
        y = _draw_sublayer(drawing, each, (left, y, width), stream, is_top=is_top)
    drawing.line((centre, y + _ARROW), (centre, y))
    bottom = drawing.box(left, y + _ARROW, width, [f"input: {stream}"], "state")
    lengths = "T: target length, S: source length" if is_decoder else "S: source length"
    drawing.text(left, bottom + LINE_HEIGHT, f"B: batch size, {lengths}", "start", "soft")
    return drawing.render()


def layer_of_paper(part: Literal["encoder", "decoder"]) -> EncoderLayer | DecoderLayer:
    """Build a layer with the sizes of the base model of Vaswani et al. 2017, table 3."""
    width, heads, inner, dropout = 512, 8, 2048, 0.1
    attention = MultiHeadAttention(width, heads)
    feedforward = FeedForward(width, inner, "relu", dropout)
    if part == "encoder":
        return EncoderLayer(attention, feedforward, "post", dropout)
    cross_attention = MultiHeadAttention(width, heads)
    return DecoderLayer(attention, cross_attention, feedforward, "post", dropout)


def find_layer(
    model: Model, part: Literal["encoder", "decoder"], name: str
) -> EncoderLayer | DecoderLayer:
    """Return the first Transformer layer of the encoder or of the decoder.

    name: name of the run in the error message
    """
    found = model.encoder if part == "encoder" else model.decoder
    if isinstance(found, TransformerEncoder | TransformerDecoder):
        return found.layers[0]
    kind = "there is none" if found is None else f"it is a {type(found).__name__}"
    raise ConfigError(
        f"{name}: the {part} has no Transformer layers ({kind}). Use a run with model.{part}.kind = "
        "'transformer'."
    )


def _draw_sublayer(
    drawing: Drawing,
    sublayer: _Sublayer,
    place: tuple[float, float, float],
    stream: str,
    *,
    is_top: bool,
) -> float:
    """Draw a sublayer. Returns the y position of its lower end.

    place:  left edge, upper end and width of the sublayer in pixels
    stream: shape of its input and output, such as "B × S × 512"
    is_top: True for the uppermost sublayer. Only its output line has an arrowhead
    """
    left, y, width = place
    centre = left + width / 2
    residual = sublayer.residual
    norm = f"layer norm, {residual.norm.normalized_shape[0]}"
    if not residual.pre_norm:
        connect = drawing.arrow if is_top else drawing.line
        connect((centre, y + _ARROW), (centre, y))
        y = drawing.box(left, y + _ARROW, width, [norm], height=28)
    plus = y + _ARROW + 11
    if residual.pre_norm and not is_top:
        drawing.line((centre, plus - 11), (centre, y))
    else:
        drawing.arrow((centre, plus - 11), (centre, y))
    drawing.text(centre + 12, y + _ARROW / 2, stream, "start", "soft")
    box_top = plus + 11 + _ARROW / 2
    if residual.skip:
        drawing.circle(centre, plus, 11, "plain", "+")
        drawing.arrow((centre, box_top), (centre, plus + 11))
    else:
        drawing.line((centre, box_top), (centre, plus - 11))
    box_bottom = drawing.box(left, box_top, width, sublayer.lines)
    if sublayer.memory:
        middle = (box_top + box_bottom) / 2
        edge = left + width
        drawing.arrow((edge + _CENTRE_GAP, middle), (edge, middle), strong=True)
        drawing.box(
            edge + _CENTRE_GAP,
            middle - box_height(2) / 2,
            widest(["encoder output", sublayer.memory]) + 24,
            ["encoder output", sublayer.memory],
            "state",
        )
    if residual.pre_norm:
        drawing.arrow((centre, box_bottom + _ARROW / 2), (centre, box_bottom))
        box_bottom = drawing.box(left, box_bottom + _ARROW / 2, width, [norm], height=28)
    end = box_bottom + _ARROW / 2
    if residual.skip:
        drawing.arrow((centre, end), (left - _SKIP, end), (left - _SKIP, plus), (centre - 11, plus))
    drawing.arrow((centre, end), (centre, box_bottom))
    return end


def _sublayers(layer: EncoderLayer | DecoderLayer) -> list[_Sublayer]:
    """Return the sublayers in the order of computation."""
    feedforward = _Sublayer(_feedforward_lines(layer.feedforward), layer.feedforward_residual)
    if isinstance(layer, EncoderLayer):
        own = _attention_lines("self-attention", layer.attention, "S", "S")
        return [_Sublayer(own, layer.attention_residual), feedforward]
    own = _attention_lines("masked self-attention", layer.attention, "T", "T")
    sublayers = [_Sublayer(own, layer.attention_residual)]
    cross, residual = layer.cross_attention, layer.cross_attention_residual
    if cross is not None and residual is not None:
        lines = _attention_lines("cross-attention", cross, "T", "S")
        sublayers.append(_Sublayer(lines, residual, f"B × S × {cross.key_width}"))
    return [*sublayers, feedforward]


def _attention_lines(
    name: str, attention: MultiHeadAttention, queries: str, keys: str
) -> list[str]:
    heads, width = attention.heads, attention.query_head_width
    return [
        f"{name}, {heads} {'head' if heads == 1 else 'heads'}",
        f"q: B × {heads} × {queries} × {width},  k: B × {heads} × {keys} × {width}",
        f"α: B × {heads} × {queries} × {keys},  v: B × {heads} × {keys} × {_value_width(attention)}",
        f"Wq: {_shape(attention.to_query)}, Wk: {_shape(attention.to_key)}, "
        f"Wv: {_shape(attention.to_value)}, Wo: {_shape(attention.output_projection)}",
    ]


def _value_width(attention: MultiHeadAttention) -> int:
    return attention.value_width // attention.heads


def _feedforward_lines(feedforward: FeedForward) -> list[str]:
    return [
        f"feed-forward, {feedforward.activation}",
        f"W1: {_shape(feedforward.widen)}, W2: {_shape(feedforward.narrow)}",
    ]


def _shape(module: nn.Module) -> str:
    """Return the shape of the weights, such as "64 × 256"; "–" if the module is not linear."""
    if not isinstance(module, nn.Linear):
        return "–"
    return " × ".join(map(str, module.weight.shape))
