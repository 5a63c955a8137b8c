"""GET /api/runs, /health and /ready: what the service offers and whether it accepts requests."""

from fastapi import APIRouter

from seqloom import __version__
from seqloom.config.schema.corpora import tag_display_name
from seqloom.inference.forecaster import Forecaster
from seqloom.serving.api.schemas.option_fields import controls
from seqloom.serving.api.schemas.predictions import (
    HealthResponse,
    RunDescription,
    RunsResponse,
)
from seqloom.serving.errors import ErrorResponse, stopping_error
from seqloom.serving.server.catalogue import LoadedRun
from seqloom.serving.server.service import ServiceDependency

router = APIRouter()


@router.get("/api/runs", tags=["runs"])
async def get_runs(service: ServiceDependency) -> RunsResponse:
    """List the loaded runs and the request limits."""
    return RunsResponse(
        version=__version__,
        limits=service.limits,
        runs=[describe_run(loaded) for loaded in service.catalogue.runs],
        controls=controls(),
    )


@router.get("/health", tags=["health"])
async def get_health(service: ServiceDependency) -> HealthResponse:
    """Liveness check. Succeeds as long as the process runs, even while it stops."""
    return HealthResponse(status="stopping" if service.admission.closed else "ok")


@router.get("/ready", tags=["health"], responses={503: {"model": ErrorResponse}})
async def get_ready(service: ServiceDependency) -> HealthResponse:
    """Readiness check. Fails while models load and while the server stops."""
    if service.admission.closed:
        raise stopping_error()
    return HealthResponse(status="ok")


def describe_run(loaded: LoadedRun) -> RunDescription:
    run = loaded.run
    decoding = run.config.decoding
    layers, heads = run.model.decoder.attention_heads
    description = RunDescription(
        name=loaded.name,
        kind=loaded.kind,
        route=loaded.task.route,
        languages=list(loaded.pairs),
        targets=list(dict.fromkeys(pair.target for pair in loaded.pairs)),
        parameters=loaded.parameters,
        memory_bytes=loaded.memory,
        engine=loaded.engine,
        attention=bool(layers),
        layers=layers,
        heads=heads,
        decoding=decoding.kind,
        beam=decoding.beam_width if decoding.kind == "beam" else None,
        split_sentences=run.config.splits_sentences,
    )
    if isinstance(run, Forecaster):
        columns, context = run.columns
        description.observe = run.task.config.observe
        description.predict = run.task.config.predict
        description.columns = list(columns)
        description.context = list(context)
    elif run.languages.tags:
        description.targets = [tag_display_name(tag) for tag in run.languages.tags]
    return description
