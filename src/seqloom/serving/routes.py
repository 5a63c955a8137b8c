"""The typed API, under /api."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from seqloom.serving.captioning import FORMATS, caption
from seqloom.serving.completing import complete
from seqloom.serving.describing import describe_all
from seqloom.serving.judging import forecast, label, score
from seqloom.serving.problems import ErrorAnswer, Problem, quoted
from seqloom.serving.schema import (
    CaptionAnswer,
    CompleteAnswer,
    CompleteRequest,
    ForecastAnswer,
    ForecastRequest,
    LabelAnswer,
    LabelRequest,
    RunsAnswer,
    ScoreAnswer,
    ScoreRequest,
    TranslateAnswer,
    TranslateRequest,
)
from seqloom.serving.service import Service, admitted_by_key, service_of
from seqloom.serving.streaming import stream_completion, stream_translation
from seqloom.serving.translating import translate

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorAnswer, "description": "No valid JSON, or an unknown language."},
    401: {"model": ErrorAnswer, "description": "A key is needed."},
    403: {"model": ErrorAnswer, "description": "The key is not known."},
    404: {"model": ErrorAnswer, "description": "There is no such run."},
    408: {"model": ErrorAnswer, "description": "The body came too slowly."},
    413: {"model": ErrorAnswer, "description": "Too much at once."},
    415: {"model": ErrorAnswer, "description": "The body is of another type."},
    422: {"model": ErrorAnswer, "description": "Something in it cannot be used; it says what."},
    503: {"model": ErrorAnswer, "description": "Busy, too slow, or stopping; try again."},
}
EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["start", "token", "done", "error"]},
        "data": {"type": "string", "description": "JSON"},
    },
    "required": ["event", "data"],
}
EVENTS: dict[int | str, dict[str, Any]] = {
    **REFUSALS,
    200: {
        "description": "Events start, token …, done; or error.",
        "content": {"text/event-stream": {"schema": EVENT}},
    },
}
IMAGE = {
    "requestBody": {
        "required": True,
        "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}},
    }
}

Served = Annotated[Service, Depends(service_of)]
router = APIRouter(prefix="/api", responses=REFUSALS)
open_router = APIRouter(prefix="/api")


async def json_only(request: Request) -> None:
    """Refuse other types before anything is parsed: a form is no JSON."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != "application/json":
        raise Problem(
            415,
            "wrong-type",
            "the body must be JSON, sent with 'Content-Type: application/json', not "
            f"{quoted(given)}",
        )


asking = [Depends(admitted_by_key), Depends(json_only)]


@open_router.get("/runs", tags=["runs"])
async def runs(service: Served) -> RunsAnswer:
    """What is served, and within which limits."""
    return describe_all(service)


@router.post("/translate", dependencies=asking, tags=["ask"])
async def post_translate(request: TranslateRequest, service: Served) -> TranslateAnswer:
    """Translate texts, long ones sentence by sentence."""
    return await translate(service, request)


@router.post(
    "/translate/stream",
    dependencies=asking,
    tags=["stream"],
    response_class=StreamingResponse,
    responses=EVENTS,
)
async def post_translate_stream(request: TranslateRequest, service: Served) -> StreamingResponse:
    """Translate one text greedily, and hear every token as it is decided."""
    return await stream_translation(service, request)


@router.post("/complete", dependencies=asking, tags=["ask"])
async def post_complete(request: CompleteRequest, service: Served) -> CompleteAnswer:
    """Finish beginnings, or make texts up."""
    return await complete(service, request)


@router.post(
    "/complete/stream",
    dependencies=asking,
    tags=["stream"],
    response_class=StreamingResponse,
    responses=EVENTS,
)
async def post_complete_stream(request: CompleteRequest, service: Served) -> StreamingResponse:
    """Finish one beginning, and hear every token as it is decided."""
    return await stream_completion(service, request)


@router.post("/label", dependencies=asking, tags=["ask"])
async def post_label(request: LabelRequest, service: Served) -> LabelAnswer:
    """Label texts, or their tokens."""
    return await label(service, request)


@router.post("/score", dependencies=asking, tags=["ask"])
async def post_score(request: ScoreRequest, service: Served) -> ScoreAnswer:
    """How probable given outputs are, token by token."""
    return await score(service, request)


@router.post("/forecast", dependencies=asking, tags=["ask"])
async def post_forecast(request: ForecastRequest, service: Served) -> ForecastAnswer:
    """What comes after windows of numbers."""
    return await forecast(service, request)


@router.post("/caption", dependencies=[Depends(admitted_by_key)], openapi_extra=IMAGE, tags=["ask"])
async def post_caption(
    request: Request,
    service: Served,
    run: str | None = None,
    beam: Annotated[int | None, Query(ge=1)] = None,
    n_best: Annotated[int, Query(ge=1)] = 1,
) -> CaptionAnswer:
    """Say what is on an image; its bytes are the body."""
    given = request.headers.get("content-type", "")
    if not given.lower().startswith("image/"):
        raise Problem(
            415,
            "wrong-type",
            f"the body must be an image ({', '.join(FORMATS)}), sent with a type such as "
            f"'Content-Type: image/jpeg', not {quoted(given)}",
        )
    return await caption(service, await request.body(), run, beam, n_best)
