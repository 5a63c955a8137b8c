"""POST /api/translate: splits texts, translates the segments, and joins the translations."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastapi import APIRouter

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import SeqloomError
from seqloom.inference.options import PredictionOptions, Probabilities
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.inference.texts.input_reports import report_messages
from seqloom.inference.texts.preparation import PreparedText
from seqloom.inference.texts.segments import (
    PreparedTexts,
    TextOutputs,
    join_segments,
    repeat_options,
)
from seqloom.serving.api.decoding import choose_decoding
from seqloom.serving.api.languages.pairs import LanguagePair
from seqloom.serving.api.schemas.predictions import (
    Output,
    TranslatedSegment,
    TranslatedText,
    TranslateRequest,
    TranslateResponse,
)
from seqloom.serving.errors import ERROR_RESPONSES, invalid_field
from seqloom.serving.server.catalogue import LoadedRun
from seqloom.serving.server.limits import check_not_blank
from seqloom.serving.server.service import WITH_KEY_AND_JSON, Service, ServiceDependency

INLINE_CHARACTERS = 200
"""Requests with at most this many characters are prepared in the event loop, longer ones in another
thread. Preparing a short request takes about a third of a millisecond. Switching to another thread
and back would take as long while a model computes."""

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES, tags=["predict"])


@router.post("/translate", dependencies=WITH_KEY_AND_JSON)
async def post_translate(
    request: TranslateRequest, service: ServiceDependency
) -> TranslateResponse:
    """Translate texts.

    Each text is split into sentences, unless `split` is false or the run was not trained on
    sentences.
    """
    check_translation(service, request)
    async with service.admission.admit():
        return await translate(service, request)


async def translate(
    service: Service, request: TranslateRequest, probabilities: Probabilities = "tokens"
) -> TranslateResponse:
    """Translate the texts of an admitted request.

    probabilities: the probabilities that the response needs. The search computes no others.
    """
    direction = choose_direction(service, request.run, request.source, request.target)
    run = direction.loaded.token_run
    options = replace(request.search_options(), probabilities=probabilities)
    decoding = choose_decoding(run, options)
    prepared = await prepare_texts(direction, request.texts, options, decoding)
    texts = await search_segments(direction.loaded, prepared, decoding, options)
    by_segment = [text.by_segment() for text in texts]
    # The response contains the attention weights of the segments, not those of whole texts.
    predictions = [
        join_segments(text, outputs, attention=False)
        for text, outputs in zip(prepared.texts, by_segment, strict=True)
    ]
    return TranslateResponse(
        run=direction.loaded.name,
        source=direction.source,
        target=direction.target,
        beam=decoding.beam_width,
        translations=[
            _translated_text(text, parts, joined, request)
            for text, parts, joined in zip(prepared.texts, by_segment, predictions, strict=True)
        ],
        warnings=[
            *run.source_tags.warnings(request.texts, "text"),
            *output_warnings(run, predictions),
        ],
    )


def output_warnings(run: Run, predictions: Sequence[Sequence[Prediction]]) -> list[str]:
    """Return warnings about the best outputs, such as unknown characters or missing numbers."""
    tokenizer = run.task.source_tokenizer
    assert tokenizer is not None
    return report_messages([best for best, *_ in predictions], tokenizer.unknown_unit, "text")


def check_translation(service: Service, request: TranslateRequest) -> None:
    limits = service.limits
    limits.check_texts("texts", request.texts)
    check_not_blank("texts", request.texts)
    limits.check_options(request)
    if request.prefix is not None:
        limits.check_texts("prefix", [request.prefix])
        if len(request.texts) > 1 or request.options.split:
            raise invalid_field(
                "prefix",
                "needs a single text that is not split into sentences; send one text, and omit the "
                "field split",
            )


@dataclass(frozen=True)
class Direction:
    """The run and the languages of a request.

    tag: target language tag that is added to each text; None if the run has no tags
    """

    loaded: LoadedRun
    tag: str | None
    source: str | None
    target: str | None


def choose_direction(
    service: Service, run: str | None, source: str | None, target: str | None
) -> Direction:
    """Choose the run and the target language tag for a request.

    - If `run` is given, the run with this name is chosen.
    - If only languages are given, the first run that translates from `source` to `target` is
      chosen. This requires that the server knows the languages of at least one run.
    - In all other cases, the only translation run is chosen.

    Raises ApiError if no run can be chosen, if there are several translation runs in the last case,
    or if the chosen run does not support the languages.
    """
    catalogue = service.catalogue
    pair: LanguagePair | None
    if run is None and (source or target) and catalogue.language_pairs:
        loaded, pair = catalogue.find_pair(source, target)
    else:
        loaded = catalogue.choose(("translation",), run)
        pair = _matching_pair(loaded, source, target)
    directions = loaded.token_run.languages
    pair_source, pair_target = (pair.source, pair.target) if pair else (None, None)
    if not directions.tags:
        return Direction(loaded, None, pair_source, pair_target)
    chosen_target = target or (pair_target if len(loaded.pairs) == 1 else None)
    if chosen_target is None:
        raise invalid_field("target", f"choose the target language: {directions.names}")
    try:
        [tag] = directions.path(chosen_target)
    except SeqloomError:
        raise invalid_field(
            "target",
            f"{loaded.name} cannot translate to '{chosen_target}'; choose one of "
            f"{directions.names}",
        ) from None
    return Direction(loaded, tag, pair_source, chosen_target)


def _matching_pair(
    loaded: LoadedRun, source: str | None, target: str | None
) -> LanguagePair | None:
    """Return the first language pair of the run with the requested source and target language.

    Raises a 422 error if the language pairs of the run are known, but none of them matches.

    If the language pairs are unknown, returns None. Exception: if the run has no language tags
    either, and the request names a language, raises a 422 error.
    """
    if loaded.token_run.languages.tags and not loaded.pairs:
        return None
    for pair in loaded.pairs:
        if pair.matches(source, target):
            return pair
    if loaded.pairs:
        raise invalid_field(
            "target" if target else "source",
            f"{loaded.name} does not translate from {source or 'any language'} to "
            f"{target or 'any language'}; its language pairs are {', '.join(map(str, loaded.pairs))}",
        )
    if source or target:
        raise invalid_field(
            "source" if source else "target",
            f"the languages of {loaded.name} are unknown; omit this field, or start the server "
            f"with --languages {source or 'de'}:{target or 'en'}",
        )
    return None


async def prepare_texts(
    direction: Direction,
    texts: Sequence[str],
    options: PredictionOptions,
    decoding: DecodingConfig,
) -> PreparedTexts:
    """Split texts into segments, and tokenise the segments.

    Raises DataError if a segment or the prefix is too long for the model.
    """
    run = direction.loaded.token_run
    if sum(map(len, texts)) <= INLINE_CHARACTERS:
        return run.prepare_texts(texts, options, decoding, direction.tag)
    return await asyncio.to_thread(run.prepare_texts, texts, options, decoding, direction.tag)


async def search_segments(
    loaded: LoadedRun,
    prepared: PreparedTexts,
    decoding: DecodingConfig,
    options: PredictionOptions,
) -> list[TextOutputs]:
    """Translate all segments. Returns, for each text, the outputs of its segments."""
    texts = [TextOutputs(prepared.task, text) for text in prepared.texts]
    first = prepared.search_inputs
    outputs = await loaded.search(
        first.inputs, decoding, options, sample_indices=first.sample_indices
    )
    segments = [(text, index) for text in texts for index in text.inputs]
    for (text, index), found in zip(segments, outputs, strict=True):
        text.found[index] = found
    await repeat_segments(loaded, texts, decoding, options)
    return texts


async def repeat_segments(
    loaded: LoadedRun,
    texts: Sequence[TextOutputs],
    decoding: DecodingConfig,
    options: PredictionOptions,
) -> None:
    """Translate a segment again if one of its outputs lacks a protected span, such as a URL.

    This time, the model input does not contain the protected spans. `TextOutputs` inserts them into
    the outputs later.
    """
    segments = [(text, index) for text in texts for index in text.incomplete]
    outputs = await loaded.search(
        [text.input_without_spans(index) for text, index in segments],
        decoding,
        repeat_options(options),
        sample_indices=[text.text.segments[index].sample_index for text, index in segments],
        torch_only=True,
    )
    for (text, index), found in zip(segments, outputs, strict=True):
        text.again[index] = found


def _translated_text(
    text: PreparedText,
    outputs: Sequence[Sequence[Prediction]],
    joined: Sequence[Prediction],
    request: TranslateRequest,
) -> TranslatedText:
    """Return the response for one text.

    outputs: n-best list of each segment
    joined:  n-best list of the text
    """
    parts = [
        TranslatedSegment(
            before=segment.before,
            source=segment.source,
            outputs=[
                Output.from_prediction(
                    prediction,
                    alignment=request.alignment,
                    attention=bool(request.options.attention),
                    heads=request.options.heads,
                )
                for prediction in segment_outputs
            ],
            unknown=list(segment.unknown),
        )
        for segment, segment_outputs in zip(text.segments, outputs, strict=True)
    ]
    best, *alternatives = dict.fromkeys(
        # The response keeps the white space at both ends, even if the text is not split.
        prediction.text if text.keeps_spaces else text.segmented.join([prediction.text])
        for prediction in (joined if text.segments else ())
    ) or (text.text,)
    return TranslatedText(
        text=best,
        alternatives=alternatives,
        parts=parts,
        unknown=list(joined[0].unknown),
        warnings=list(joined[0].warnings),
    )
