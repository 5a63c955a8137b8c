"""Routes that show how an output was computed: attention, search, alternatives, explanations.

Each request is about one text. Each run has one thread that runs its model. This thread processes
the requests of these routes one at a time. The exception is POST /api/continue: its requests can
share a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query

from seqloom.analysis.attention_example import (
    AttentionExample,
    LectureScore,
    explain_example,
    explain_lecture,
)
from seqloom.analysis.explanation import HeadSelection, explain
from seqloom.analysis.output import check_has_text_source, no_attention_error
from seqloom.analysis.search_inspection import Alternative, InspectedSearch, SearchInspection
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.finite_json import to_finite_json, to_json_number
from seqloom.inference.options import UNSPLIT, PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.nn.attention import Selection
from seqloom.serving.api.decoding import choose_decoding
from seqloom.serving.api.schemas.inspection import (
    AlternativesRequest,
    AlternativesResponse,
    AttentionRequest,
    AttentionResponse,
    ContinueRequest,
    ContinueResponse,
    ExampleRequest,
    ExplainRequest,
    ExplainResponse,
    InspectionRequest,
    InsteadRequest,
    InsteadResponse,
    SearchTreeResponse,
    TokenChoice,
    TracedSearchRequest,
    TracedSearchResponse,
)
from seqloom.serving.api.schemas.predictions import Output
from seqloom.serving.api.translation import choose_direction
from seqloom.serving.errors import ERROR_RESPONSES, invalid_field
from seqloom.serving.server.catalogue import LoadedRun
from seqloom.serving.server.limits import check_maximum, check_not_blank
from seqloom.serving.server.service import WITH_KEY, WITH_KEY_AND_JSON, Service, ServiceDependency
from seqloom.text.vocabulary import END, PAD, START
from seqloom.viz.search_tree import search_tree_data

TEXT_KINDS: tuple[str, ...] = ("translation", "labels", "language-model")
"""Kinds of runs that the inspection routes accept. Captioning runs are excluded, because they would
open the text of the request as an image file."""

T = TypeVar("T")

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES, tags=["inspect"])


class InspectionContext:
    """The run, text and decoding configuration of an inspection request."""

    def __init__(self, service: Service, request: InspectionRequest) -> None:
        service.limits.check_texts("text", [request.text])
        service.limits.check_options(request)
        self._service = service
        self._request = request
        self.loaded, self.tag = _choose_run(service, request)
        self.run: Run = self.loaded.token_run

    @property
    def text(self) -> str:
        """The text, with a target language tag if the run needs one."""
        return self.run.languages.add_tag([self._request.text], self.tag)[0]

    @property
    def warnings(self) -> list[str]:
        """Warnings about the text, for the response."""
        return self.run.source_tags.warnings([self._request.text], "text")

    def decoding(self, n_best: int = 1) -> DecodingConfig:
        return choose_decoding(self.run, replace(self._request.options, n_best=n_best))

    def search_inspection(self, n_best: int = 1) -> SearchInspection:
        return SearchInspection.of(self.run, self.text, self.decoding(n_best))

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in the thread that runs the model of the run, and return its result.

        If too many requests are running, waits until others have ended.
        """
        async with self._service.admission.admit():
            result: T = await self.loaded.batcher.call(function)
        return result


def _choose_run(service: Service, request: InspectionRequest) -> tuple[LoadedRun, str | None]:
    """Return the run of a request, and the target language tag to add to its text.

    The tag is, for example, <2de>. It is None if the run needs no tag.
    """
    loaded = service.catalogue.choose(TEXT_KINDS, request.run) if request.run else None
    if loaded is None or loaded.kind == "translation":
        direction = choose_direction(service, request.run, None, request.target)
        return direction.loaded, direction.tag
    return loaded, None


@router.post("/attention", dependencies=WITH_KEY_AND_JSON)
async def post_attention(
    request: AttentionRequest, service: ServiceDependency
) -> AttentionResponse:
    """Return the attention weights of an output, by layer and head."""
    context = InspectionContext(service, request)
    if request.output is not None:
        service.limits.check_texts("output", [request.output])
    check_not_blank("text", [request.text])

    def predict() -> Prediction:
        check_has_text_source(context.run)
        if request.output is not None:
            return context.run.score([context.text], [request.output], heads=True)[0]
        [[prediction]] = context.run.predict(
            [context.text], replace(UNSPLIT, heads=True), decoding=context.decoding()
        )
        return prediction

    prediction = await context.call(predict)
    if prediction.attention is None or prediction.heads is None:
        raise no_attention_error(context.run)
    head_maps = prediction.attention_map(prediction.heads, merged=not request.pieces)
    mean_map = prediction.attention_map(prediction.attention, merged=not request.pieces)
    return AttentionResponse(
        run=context.loaded.name,
        output=Output.from_prediction(prediction, alignment=True),
        outputs=list(mean_map.outputs),
        sources=list(mean_map.sources),
        weights=mean_map.weights.tolist(),
        heads=head_maps.weights.transpose(1, 2, 0, 3).tolist(),
        warnings=context.warnings,
    )


async def _trace_search(
    context: InspectionContext, service: Service, request: TracedSearchRequest
) -> InspectedSearch:
    check_maximum("n_best", request.n_best, service.limits.beam)
    _check_tokens(service, context.run, "begin", request.begin, allow_end=False)
    inspection = context.search_inspection(request.n_best or 1)
    return await context.call(lambda: inspection.search(request.n_best, request.begin))


@router.post("/search", dependencies=WITH_KEY_AND_JSON)
async def post_search(
    request: TracedSearchRequest, service: ServiceDependency
) -> TracedSearchResponse:
    """Return a search step by step: every candidate, what happened to it, and why."""
    context = InspectionContext(service, request)
    searched = await _trace_search(context, service, request)
    trace = searched.to_json()
    return TracedSearchResponse(
        run=context.loaded.name,
        outputs=[Output.from_prediction(output) for output in searched.outputs],
        pieces=trace["pieces"],
        record=to_finite_json(trace["record"]),
        warnings=context.warnings,
    )


@router.post("/search/tree", dependencies=WITH_KEY_AND_JSON)
async def post_search_tree(
    request: TracedSearchRequest, service: ServiceDependency
) -> SearchTreeResponse:
    """Return a search as a tree, with coordinates for drawing it."""
    context = InspectionContext(service, request)
    searched = await _trace_search(context, service, request)
    return SearchTreeResponse(
        run=context.loaded.name,
        kind=searched.record.kind,
        width=searched.record.width,
        length_penalty=searched.record.length_penalty,
        length_counts_end=searched.record.length_counts_end,
        outputs=[Output.from_prediction(output) for output in searched.outputs],
        tree=to_finite_json(search_tree_data(searched)),
        warnings=context.warnings,
    )


@router.post("/alternatives", dependencies=WITH_KEY_AND_JSON)
async def post_alternatives(
    request: AlternativesRequest, service: ServiceDependency
) -> AlternativesResponse:
    """Return the likeliest tokens at each step of an output."""
    context = InspectionContext(service, request)
    if request.tokens is not None:
        _check_tokens(service, context.run, "tokens", request.tokens)
    inspection = context.search_inspection()

    def find_alternatives() -> tuple[list[int], list[list[Alternative]]]:
        tokens = request.tokens
        if tokens is None:
            tokens = list(inspection.search(1).outputs[0].tokens)
        prefix = [token for token in tokens if token != END]
        return prefix, inspection.alternatives(prefix, request.count)

    tokens, steps = await context.call(find_alternatives)
    return AlternativesResponse(
        run=context.loaded.name,
        tokens=tokens,
        pieces=[inspection.name_of(token) for token in tokens],
        steps=[[_to_choice(alternative) for alternative in step] for step in steps],
    )


@router.post("/continue", dependencies=WITH_KEY_AND_JSON)
async def post_continue(request: ContinueRequest, service: ServiceDependency) -> ContinueResponse:
    """Return the best output that starts with given tokens."""
    context = InspectionContext(service, request)
    _check_tokens(service, context.run, "begin", request.begin)
    inspection = context.search_inspection()
    if request.begin[-1] == END:
        prediction = await context.call(lambda: inspection.continue_from(request.begin))
    else:
        # The page continues several beginnings at once. They share a batch.
        async with service.admission.admit():
            [[prediction]] = await context.loaded.search(
                [inspection.with_prefix(request.begin)],
                inspection.decoding,
                PredictionOptions(attention=False),
                torch_only=True,
            )
    return ContinueResponse(run=context.loaded.name, output=Output.from_prediction(prediction))


@router.post("/instead", dependencies=WITH_KEY_AND_JSON)
async def post_instead(request: InsteadRequest, service: ServiceDependency) -> InsteadResponse:
    """Replace the token at one step of the best output and decode the rest again."""
    context = InspectionContext(service, request)
    service.limits.check_texts("piece", [request.piece])
    inspection = context.search_inspection()
    result = await context.call(lambda: inspection.replace_token(request.step, request.piece))
    return InsteadResponse(
        run=context.loaded.name,
        step=result.step,
        original=Output.from_prediction(result.original),
        changed=Output.from_prediction(result.changed),
        alternatives=[_to_choice(alternative) for alternative in result.alternatives],
    )


@router.post("/explain", dependencies=WITH_KEY_AND_JSON)
async def post_explain(request: ExplainRequest, service: ServiceDependency) -> ExplainResponse:
    """Explain a decoder step: query, keys, scores, weights, context and readout, with values."""
    context = InspectionContext(service, request)
    if request.output is not None:
        service.limits.check_texts("output", [request.output])
    explanation = await context.call(
        lambda: explain(
            context.run,
            context.text,
            request.step,
            target=request.output,
            focus=HeadSelection(request.layer, request.head),
            decoding=context.decoding(),
        )
    )
    return ExplainResponse(
        run=context.loaded.name,
        explanation=to_finite_json(explanation.to_json()),
        warnings=context.warnings,
    )


@router.get("/explain/lecture", dependencies=WITH_KEY)
async def get_lecture_example(
    score: Annotated[LectureScore, Query(description="Score function.")] = "dot",
    choice: Annotated[
        Selection, Query(description="How the context is computed from the scores and values.")
    ] = "argmax",
) -> ExplainResponse:
    """Explain a small built-in attention example, step by step.

    Does not need a trained run.
    """
    explanation = explain_lecture(score, choice)
    return ExplainResponse(run=None, explanation=to_finite_json(explanation.to_json()))


@router.post("/explain/example", dependencies=WITH_KEY_AND_JSON)
async def post_attention_example(request: ExampleRequest) -> ExplainResponse:
    """Explain self-attention on given matrices, step by step.

    Does not need a trained run.
    """
    matrices = request.model_dump(exclude={"score", "selection"})
    example = replace(AttentionExample.of_lecture(request.score, request.selection), **matrices)
    explanation = explain_example(example)
    return ExplainResponse(run=None, explanation=to_finite_json(explanation.to_json()))


def _check_tokens(
    service: Service, run: Run, field: str, tokens: Sequence[int], *, allow_end: bool = True
) -> None:
    """Raise a 422 error if there are too many tokens, or if a token is not allowed.

    All tokens of the run's vocabulary are allowed, except PAD and START. END is allowed only as the
    last token, and only if `allow_end` is true.
    """
    vocabulary_size = run.task.target_tokenizer.size
    check_maximum(f"{field}, number of tokens", len(tokens), service.limits.output_tokens)
    for index, token in enumerate(tokens):
        is_last = index == len(tokens) - 1
        valid = 0 <= token < vocabulary_size and token not in (PAD, START)
        if not valid or (token == END and not (is_last and allow_end)):
            rule = "PAD and START; only the last token may be END"
            raise invalid_field(
                f"{field}[{index}]",
                f"{token} is not allowed; send token ids from 0 to {vocabulary_size - 1}, except "
                f"{rule if allow_end else 'PAD, START and END'}",
            )


def _to_choice(alternative: Alternative) -> TokenChoice:
    return TokenChoice(
        token=alternative.token,
        piece=alternative.piece,
        log_probability=to_json_number(alternative.log_probability),
    )
