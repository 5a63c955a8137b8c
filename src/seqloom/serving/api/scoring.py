"""POST /api/score: the probabilities of given targets."""

from fastapi import APIRouter

from seqloom.inference.texts.input_reports import unknown_messages
from seqloom.serving.api.schemas.predictions import Output, ScoreRequest, ScoreResponse
from seqloom.serving.api.translation import choose_direction
from seqloom.serving.errors import ERROR_RESPONSES, invalid_field
from seqloom.serving.server.limits import check_not_blank
from seqloom.serving.server.service import WITH_KEY_AND_JSON, ServiceDependency

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES, tags=["predict"])


@router.post("/score", dependencies=WITH_KEY_AND_JSON)
async def score(request: ScoreRequest, service: ServiceDependency) -> ScoreResponse:
    """Compute the log-probability of each token of given targets."""
    service.limits.check_texts("targets", request.targets)
    service.limits.check_texts("sources", request.sources or [])
    if request.sources is None:
        loaded = service.catalogue.choose(("language-model",), request.run)
        sources, tag = [""] * len(request.targets), None
    else:
        direction = choose_direction(service, request.run, request.source, request.target)
        loaded, tag = direction.loaded, direction.tag
        if len(request.sources) != len(request.targets):
            raise invalid_field(
                "sources",
                f"there are {len(request.sources)} sources and {len(request.targets)} targets; "
                "send one source per target",
            )
        check_not_blank("sources", request.sources)
        sources = loaded.token_run.languages.add_tag(request.sources, tag)
    run = loaded.token_run
    async with service.admission.admit():
        predictions = await loaded.batcher.call(
            lambda: run.score(sources, request.targets, attention=request.attention)
        )
    return ScoreResponse(
        run=loaded.name,
        scores=[
            Output.from_prediction(
                run.languages.without_tag(prediction, tag),
                attention=request.attention,
                alignment=request.attention,
            )
            for prediction in predictions
        ],
        warnings=[
            *run.source_tags.warnings(sources, "source"),
            *unknown_messages(run.task, request.sources or (), "source"),
        ],
    )
