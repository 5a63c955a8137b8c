"""Lay one step of a decoder open, whatever decoder it is."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import NoSource
from seqloom.inside.explanation import Explanation, Focus, Story, Token, Words
from seqloom.inside.labels import tell_label
from seqloom.inside.recurrent import tell_recurrent
from seqloom.inside.scene import Scene
from seqloom.inside.transformer import tell_transformer
from seqloom.models.interface import DecoderModule, Memory
from seqloom.models.labels import LabelDecoder
from seqloom.models.recurrent import RecurrentDecoder
from seqloom.models.transformer import TransformerDecoder
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run
from seqloom.text.vocabulary import SPECIAL_TOKENS, START

BEST = 5
"""Tokens that are named with their probabilities."""


def explain(
    run: Run,
    text: str,
    step: int,
    *,
    target: str | None = None,
    focus: Focus | None = None,
    decoding: DecodingConfig | None = None,
) -> Explanation:
    """How a run comes to the token it puts out at a step, from 1, of its output for a text.

    target: this output instead of the run's own. A language model completes the text
    """
    output = decoded(run, text, target, decoding)
    check_step(step, output)
    prepared = run.task.prepare(run.languages.add_tag([text], None)[0])
    with torch.inference_mode():
        memory = run.predictor.encode([prepared])
        inputs = (START, *output.tokens[: step - 1])
        words = Words(_places(output, memory), (SPECIAL_TOKENS[START], *output.pieces[: step - 1]))
        told, probabilities, place = explain_step(run.model.decoder, memory, inputs, words, focus)
    layer, head = place
    answer, best = output.tokens[step - 1], probabilities.topk(min(BEST, len(probabilities)))
    [previous, asked, *names] = _pieces(run, [inputs[-1], answer, *best.indices.tolist()])
    return Explanation(
        source=words.source,
        output=output.pieces,
        step=step,
        previous=Token(previous, inputs[-1]),
        answer=Token(asked, answer, float(probabilities[answer])),
        best=tuple(map(Token, names, best.indices.tolist(), best.values.tolist())),
        layer=layer,
        head=head,
        parts=tuple(told.parts),
    )


def explain_step(
    decoder: DecoderModule,
    memory: Memory,
    inputs: Sequence[int],
    words: Words,
    focus: Focus | None = None,
) -> tuple[Story, Tensor, tuple[int | None, int | None]]:
    """What a decoder does after these inputs: its story, (V,) probabilities, layer and head.

    memory: of one source
    """
    place = chosen_look(decoder, focus or Focus())
    tokens = torch.tensor([list(inputs)], device=memory.mask.device)  # (1, t)
    layer, head = ((one or 1) - 1 for one in place)
    scene = Scene(memory, tokens, words, layer, head, Story())
    match decoder:
        case RecurrentDecoder():
            probabilities = tell_recurrent(decoder, scene)
        case TransformerDecoder():
            probabilities = tell_transformer(decoder, scene)
        case LabelDecoder():
            probabilities = tell_label(decoder, scene)
        case _:
            raise ConfigError(
                "an ensemble takes as many steps at once as it has members; explain each by itself"
            )
    return scene.story, probabilities.cpu(), place


def chosen_look(decoder: DecoderModule, focus: Focus) -> tuple[int | None, int | None]:
    """Layer and head whose look is laid open, from 1; None where nobody looks."""
    layers, heads = looks_of(decoder)
    if not layers:
        asked = [name for name in ("layer", "head") if getattr(focus, name) is not None]
        if asked:
            raise ConfigError(
                f"this decoder has no attention, so there is no {asked[0]} to choose: leave out "
                f"--{asked[0]}, or train with model.decoder.attention.kind=attention"
            )
        return None, None
    layer = layers if focus.layer is None else focus.layer
    head = 1 if focus.head is None else focus.head
    for name, number, count in (("layer", layer, layers), ("head", head, heads)):
        if not 1 <= number <= count:
            there = f"1 to {count}" if count > 1 else "1"
            raise ConfigError(
                f"there is no {name} {number} that looks; this decoder has {count}: "
                f"choose --{name} {there}"
            )
    return layer, head


def looks_of(decoder: DecoderModule) -> tuple[int, int]:
    """How many layers look, and with how many heads; a recurrent decoder looks once a step."""
    match decoder:
        case RecurrentDecoder(attention=attention):
            return (0, 0) if attention is None else (1, attention.plan.heads)
        case TransformerDecoder(layers=layers):
            return len(layers), layers[0].attention.plan.heads
        case _:
            return 0, 0


def decoded(
    run: Run, text: str, target: str | None, decoding: DecodingConfig | None = None
) -> Prediction:
    """The run's own output for a text, or the given one; with the ids of its pieces."""
    speaks_alone = isinstance(run.task.signature.source, NoSource)
    if not (speaks_alone or text.strip()):
        raise DataError("the text is blank, so there is nothing to read; give a text")
    if target is not None:
        return run.score(["" if speaks_alone else text], [target], attention=False)[0]
    if speaks_alone:
        return run.complete([text], decoding=decoding or run.config.decoding)[0][0]
    # Where each piece looked is asked for, so that the model itself searches and no other engine.
    return run.translate([text], decoding=decoding)[0]


def check_step(step: int, output: Prediction) -> None:
    """Is there such a step?"""
    count = len(output.pieces)
    if 1 <= step <= count:
        return
    shown = " ".join(piece.replace("▁", "") or "▁" for piece in output.pieces)
    raise DataError(f"there is no step {step}; the output has {count}, from 1 to {count}: {shown}")


def _places(output: Prediction, memory: Memory) -> tuple[str, ...]:
    """The pieces that were read; the cells of an image are numbered."""
    size = memory.mask.shape[1]
    cells = tuple(f"cell {number + 1}" for number in range(size))
    return output.source_pieces or cells


def _pieces(run: Run, tokens: Sequence[int]) -> list[str]:
    """Of any ids, special ones too."""
    spell = run.task.target_tokenizer.pieces
    return [SPECIAL_TOKENS[id_] if id_ < len(SPECIAL_TOKENS) else spell([id_])[0] for id_ in tokens]
