"""POST /api/translate: splits texts, translates the segments, and joins the translations."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastapi import APIRouter

from seqloom.core.errors import SeqloomError
from seqloom.decoding.rules import MAX_DEFAULT_LENGTH
from seqloom.runs.batching import input_tokens
from seqloom.runs.options import PredictionOptions, Probabilities
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run
from seqloom.serving.api.decoding import beam_width, choose_decoding
from seqloom.serving.api.errors import ERROR_RESPONSES, invalid_field
from seqloom.serving.api.languages.pairs import LanguagePair
from seqloom.serving.api.languages.sentences import SegmentedText, single_segment, split_text
from seqloom.serving.api.schemas.predictions import (
    Output,
    TranslatedSegment,
    TranslatedText,
    TranslateRequest,
    TranslateResponse,
)
from seqloom.serving.server.catalogue import LoadedRun
from seqloom.serving.server.limits import check_maximum, check_not_blank
from seqloom.serving.server.service import WITH_KEY_AND_JSON, Service, ServiceDependency
from seqloom.tasks.task import ModelInput

INLINE_CHARACTERS = 200
"""Requests with at most this many characters are prepared in the event loop, longer ones in another
thread. Preparing a short request takes about a third of a millisecond. Switching to another thread
and back would take as long while a model computes."""

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES, tags=["predict"])


@router.post("/translate", dependencies=WITH_KEY_AND_JSON)
async def post_translate(
    request: TranslateRequest, service: ServiceDependency
) -> TranslateResponse:
    """Translate texts. Each text is split into sentences, unless `split` is false."""
    return await translate(service, request)


async def translate(
    service: Service, request: TranslateRequest, probabilities: Probabilities = "tokens"
) -> TranslateResponse:
    """Translate the texts of a request.

    probabilities: the probabilities that the response needs. The search computes no others.
    """
    check_translation(service, request)
    direction = choose_direction(service, request.run, request.source, request.target)
    run = direction.loaded.token_run
    decoding = choose_decoding(
        run, request.beam, request.n_best, request.length_penalty, request.length_counts_end
    )
    options = PredictionOptions(
        request.n_best,
        attention=request.attention or request.alignment or request.heads,
        heads=request.heads,
        probabilities=probabilities,
    )
    async with service.admission.admit():
        prepared = await prepare_texts(direction, request.texts, request.split, request.prefix)
        predictions = await direction.loaded.search(prepared.inputs, decoding, options)
    untagged = iter(
        [run.languages.without_tag(prediction, direction.tag) for prediction in outputs]
        for outputs in predictions
    )
    return TranslateResponse(
        run=direction.loaded.name,
        source=direction.source,
        target=direction.target,
        beam=beam_width(decoding),
        translations=[
            _join_segments(text, [next(untagged) for _ in text.segments], request)
            for text in prepared.texts
        ],
        warnings=prepared.warnings(run),
    )


def check_translation(service: Service, request: TranslateRequest) -> None:
    limits = service.limits
    limits.check_texts("texts", request.texts)
    check_not_blank("texts", request.texts)
    check_maximum("beam", request.beam, limits.beam)
    check_maximum("n_best", request.n_best, limits.n_best)
    if request.prefix is not None:
        limits.check_texts("prefix", [request.prefix])
        if len(request.texts) > 1 or request.split:
            raise invalid_field("prefix", "needs a single text and split = false")


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

    If `run` is the name of a run, this run is chosen. Otherwise the first run that translates from
    `source` to `target` is chosen. If both languages are None, or if no run has known language
    pairs, the service must have exactly one translation run, which is then chosen.
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
    """Return the first language pair of the run that has the requested source and target.

    Raises a 422 error if the run has known pairs, but none of them matches. If the pairs of the run
    are unknown, returns None. However, if the run also has no tags and the request names a
    language, raises a 422 error, because the run may not translate this language.
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


@dataclass(frozen=True)
class PreparedTexts:
    """Texts that are split into segments and tokenised.

    inputs: one model input for each segment, first those of the first text, then of the second, …
    """

    texts: tuple[SegmentedText, ...]
    inputs: tuple[ModelInput, ...]

    def warnings(self, run: Run) -> list[str]:
        """Return the warnings about the texts, for the response."""
        segments = [segment.text for text in self.texts for segment in text.segments]
        return run.source_tags.warnings(segments, "sentence" if len(segments) > 1 else "text")


async def prepare_texts(
    direction: Direction, texts: Sequence[str], split: bool, prefix: str | None
) -> PreparedTexts:
    """Split texts into segments, if `split` is True, and tokenise the segments.

    Raises DataError if a segment or the prefix is too long for the model.

    prefix: text with which every output must start. None: no prefix.
    """
    run = direction.loaded.token_run

    def prepare_segment(text: str) -> ModelInput:
        return run.task.prepare(run.languages.add_tag([text], direction.tag)[0])

    def prepare_all() -> PreparedTexts:
        max_tokens = max_segment_tokens(run)
        segmented = tuple(
            split_text(text, lambda part: input_tokens(prepare_segment(part)) <= max_tokens)
            if split
            else single_segment(text)
            for text in texts
        )
        inputs = [prepare_segment(segment.text) for text in segmented for segment in text.segments]
        if prefix is not None:
            tokens = tuple(run.task.target_tokenizer.encode(prefix.strip()))
            inputs = [replace(item, prefix=(*item.prefix, *tokens)) for item in inputs]
        run.predictor.check_input_lengths(inputs)
        return PreparedTexts(segmented, tuple(inputs))

    if sum(map(len, texts)) <= INLINE_CHARACTERS:
        return prepare_all()
    return await asyncio.to_thread(prepare_all)


def max_segment_tokens(run: Run) -> int:
    """Return the maximum number of source tokens of a segment, including END.

    This is 3/4 of the maximum output length, or the maximum source length of the model if that is
    less. With 3/4, an output can have a third more tokens than its source before it is cut.
    """
    output_limits = [
        run.config.decoding.max_length or MAX_DEFAULT_LENGTH,
        run.model.max_target_length,
    ]
    max_output = min(limit for limit in output_limits if limit is not None)
    max_source = run.model.max_source_length
    return max_output * 3 // 4 if max_source is None else min(max_source, max_output * 3 // 4)


def _join_segments(
    text: SegmentedText, predictions: Sequence[Sequence[Prediction]], request: TranslateRequest
) -> TranslatedText:
    """Join the translations of the segments into the response for one text.

    predictions: n-best list of each segment
    """
    parts = [
        TranslatedSegment(
            before=segment.before,
            source=segment.text,
            outputs=[
                Output.from_prediction(
                    prediction,
                    alignment=request.alignment,
                    attention=request.attention,
                    heads=request.heads,
                )
                for prediction in outputs
            ],
        )
        for segment, outputs in zip(text.segments, predictions, strict=True)
    ]
    versions = [
        # If a segment has fewer outputs than other segments, its last output is repeated.
        text.join([outputs[min(rank, len(outputs) - 1)].text for outputs in predictions])
        for rank in range(request.n_best)
    ]
    best, *alternatives = dict.fromkeys(versions)
    return TranslatedText(text=best, alternatives=alternatives, parts=parts)
