"""Explains one decoder step of a run, for every kind of decoder."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.analysis.explain.explanation import (
    Explanation,
    HeadSelection,
    PositionLabels,
    TokenProbability,
    TracedValue,
)
from seqloom.analysis.explain.labels import trace_labels
from seqloom.analysis.explain.recurrent import trace_recurrent
from seqloom.analysis.explain.step_trace import StepTrace
from seqloom.analysis.explain.transformer import trace_transformer
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import NoSource, Vectors
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.models.interface import DecoderModule, Memory
from seqloom.models.labels import LabelDecoder
from seqloom.models.recurrent import RecurrentDecoder
from seqloom.models.transformer import TransformerDecoder
from seqloom.text.vocabulary import SPECIAL_TOKENS, START

BEST_TOKENS = 5
"""Number of most probable tokens in an explanation."""


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
            _source_labels(output, memory), (SPECIAL_TOKENS[START], *output.pieces[: step - 1])
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
    """The traced values of one decoder step.

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
    if type(decoder).__module__.partition(".")[0] != "seqloom":
        raise ConfigError(
            f"cannot explain the decoder {type(decoder).__name__}: it is defined outside seqloom, "
            "so its formulas are not known; explain a run with a recurrent or Transformer decoder"
        )
    layer, head = select_head(decoder, focus or HeadSelection())
    tokens = torch.tensor([list(inputs)], device=memory.mask.device)  # (1, t)
    trace = StepTrace(memory, tokens, labels, (layer or 1) - 1, (head or 1) - 1)
    match decoder:
        case RecurrentDecoder():
            probabilities = trace_recurrent(decoder, trace)
        case TransformerDecoder():
            probabilities = trace_transformer(decoder, trace)
        case LabelDecoder():
            probabilities = trace_labels(decoder, trace)
        case _:
            raise ConfigError(
                "cannot explain an ensemble, because every member computes its own step; "
                "explain each member by itself"
            )
    return ExplainedStep(tuple(trace.parts), probabilities.cpu(), layer, head)


def select_head(decoder: DecoderModule, focus: HeadSelection) -> tuple[int | None, int | None]:
    """Return the layer and the head to explain, counted from 1.

    Both are None if the decoder has no attention. Raises ConfigError if `focus` names a layer or a
    head that the decoder does not have.
    """
    layers, heads = count_attention_heads(decoder)
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


def count_attention_heads(decoder: DecoderModule) -> tuple[int, int]:
    """Return the number of layers with attention, and the number of heads in each layer.

    Both are 0 if the decoder has no attention.
    """
    match decoder:
        case RecurrentDecoder(attention=attention):
            return (0, 0) if attention is None else (1, attention.heads)
        case TransformerDecoder(layers=layers):
            return len(layers), layers[0].attention.heads
        case _:
            return 0, 0


def decode_output(
    run: Run, text: str, target: str | None, decoding: DecodingConfig | None = None
) -> Prediction:
    """Return the output to analyse: the given target or, if it is None, the output of a search."""
    is_language_model = isinstance(run.task.signature.source, NoSource)
    if isinstance(run.task.signature.source, Vectors):
        raise ConfigError(
            f"{run.name}: reads vectors, but this analysis needs text. Use a run that reads text."
        )
    if not (is_language_model or text.strip()):
        raise DataError("the text is blank; give a text")
    if target is not None:
        return run.score(["" if is_language_model else text], [target], attention=False)[0]
    if is_language_model:
        return run.complete([text], decoding=decoding or run.config.decoding)[0][0]
    # `translate` computes attention by default. Therefore torch decodes here, and not CTranslate2,
    # which returns no attention.
    return run.translate([text], decoding=decoding, split=False, pass_through=False)[0]


def check_step(step: int, output: Prediction) -> None:
    """Raise DataError if the output has no token at this step."""
    count = len(output.pieces)
    if 1 <= step <= count:
        return
    pieces = " ".join(piece.replace("▁", "") or "▁" for piece in output.pieces)
    raise DataError(f"there is no step {step}; the output has steps 1 to {count}: {pieces}")


def _source_labels(output: Prediction, memory: Memory) -> tuple[str, ...]:
    """Return one label per source position: the token at this position.

    The source positions of an image are the cells of a grid. Their labels are "cell 1", "cell 2" …
    """
    size = memory.mask.shape[1]
    cells = tuple(f"cell {number + 1}" for number in range(size))
    return output.source_pieces or cells


def _pieces(run: Run, tokens: Sequence[int]) -> list[str]:
    """Return the text of each token id. Special tokens such as END have a text, too."""
    pieces = run.task.target_tokenizer.pieces
    return [
        SPECIAL_TOKENS[id_] if id_ < len(SPECIAL_TOKENS) else pieces([id_])[0] for id_ in tokens
    ]
