"""A step of a Transformer's decoder, told by taking all its positions through its own layers."""

import torch
from torch import Tensor

from seqloom.inside.scene import Asking, Scene, tell_answer, tell_input, tell_look
from seqloom.models.transformer import TransformerDecoder
from seqloom.nn.transformer import DecoderLayer, FeedForward, Residual


def tell_transformer(decoder: TransformerDecoder, scene: Scene) -> Tensor:
    """(V,) the probabilities of the next token, and in the story how they come about."""
    scene.story.begin("what goes in")
    tell_input(decoder.embedder, scene)
    stream = decoder.embedder(scene.tokens)  # (1, T, D)
    for number, layer in enumerate(decoder.layers):
        if number == scene.layer:
            stream = _tell_layer(layer, stream, scene)
            continue
        cross = layer.cross_attention
        memory = None if cross is None else cross.keys_values(scene.memory.states)
        stream = layer(stream, memory, scene.visible)
    above = len(decoder.layers) - 1 - scene.layer
    last = "x‴" if above == 0 else f"what {above} more layer{'s' if above > 1 else ''} made of x‴"
    normed = not isinstance(decoder.norm, torch.nn.Identity)
    features = decoder.norm(stream[:, -1])
    return tell_answer(decoder, features, f"norm({last})" if normed else last, scene)


def _tell_layer(layer: DecoderLayer, stream: Tensor, scene: Scene) -> Tensor:
    """One layer over all positions (1, T, D), told of the last of them."""
    story, which, read = scene.story, f"layer {scene.layer + 1}", scene.now("a")
    story.begin(f"{which}: where it looks back")
    entered = f" = {scene.now('x')}" if scene.layer == 0 else f", as layer {scene.layer} left it"
    story.tell("stream", f"x{entered}", stream[0, -1])
    stream = layer.around_attention(stream, lambda states: _look_back(layer, states, scene))
    story.tell("stream", f"x′ = {_around(layer.around_attention, 'x', read)}", stream[0, -1])
    cross, around = layer.cross_attention, layer.around_cross
    entry = "x′"
    if cross is not None and around is not None:
        story.begin(f"{which}: where it looks in the source")
        stream = around(stream, lambda states: _look_across(layer, states, scene))
        story.tell("stream", f"x″ = {_around(around, 'x′', read)}", stream[0, -1])
        entry = "x″"
    story.begin(f"{which}: what it makes of it")
    stream = layer.around_feedforward(stream, layer.feedforward)
    inner = _thought(layer.feedforward, _asked(layer.around_feedforward, entry))
    formula = _around(layer.around_feedforward, entry, inner)
    story.tell("stream", f"x‴ = {formula}", stream[0, -1])
    return stream


def _look_back(layer: DecoderLayer, states: Tensor, scene: Scene) -> Tensor:
    attention, last = layer.attention, scene.step - 1
    everything = torch.ones(1, 1, 1, scene.step, dtype=torch.bool, device=states.device)
    look = attention.lay_open(states[:, -1:], states, everything, place=last)
    name = _asked(layer.around_attention, "x")
    tell_look(attention, look, Asking(name, name, scene.words.target), scene)
    return attention.read_self(states, None)


def _look_across(layer: DecoderLayer, states: Tensor, scene: Scene) -> Tensor:
    attention, source = layer.cross_attention, scene.memory.states
    assert attention is not None
    assert layer.around_cross is not None
    look = attention.lay_open(states[:, -1:], source, scene.visible)
    asking = Asking(_asked(layer.around_cross, "x′"), "h", scene.words.source)
    tell_look(attention, look, asking, scene)
    return attention.read(states, attention.keys_values(source), scene.visible)


def _asked(residual: Residual, stream: str) -> str:
    """What a sublayer sees of the stream."""
    return f"norm({stream})" if residual.first else stream


def _around(residual: Residual, stream: str, inner: str) -> str:
    return f"{stream} + {inner}" if residual.first else f"norm({stream} + {inner})"


def _thought(feedforward: FeedForward, seen: str) -> str:
    return f"W₂ {feedforward.activation}(W₁ {seen} + b₁) + b₂"
