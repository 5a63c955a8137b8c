"""Pages and signs of life. Everything comes from this folder; nothing from outside."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Response

from seqloom.serving.files import file_at
from seqloom.serving.problems import ErrorAnswer, Problem, stopping
from seqloom.serving.schema import HealthAnswer
from seqloom.serving.service import Service, service_of

Used = Annotated[Service, Depends(service_of)]
Seen = Annotated[str | None, Header(alias="If-None-Match")]
router = APIRouter()


@router.get("/", include_in_schema=False)
async def index(seen: Seen = None) -> Response:
    return _file("/", seen)


@router.get("/docs", include_in_schema=False)
async def docs(seen: Seen = None) -> Response:
    return _file("/docs", seen)


@router.get("/static/{name:path}", include_in_schema=False)
async def static(name: str, seen: Seen = None) -> Response:
    return _file(f"/static/{name}", seen)


def _file(address: str, seen: str | None) -> Response:
    found = file_at(address, seen)
    if found is None:
        raise Problem(404, "not-found", "there is no such file; the page is at /")
    return found


@router.get("/health", tags=["signs of life"])
async def health(service: Used) -> HealthAnswer:
    """Is the process alive? It is even while it stops."""
    return HealthAnswer(status="stopping" if service.gate.closed else "ok")


@router.get("/ready", tags=["signs of life"], responses={503: {"model": ErrorAnswer}})
async def ready(service: Used) -> HealthAnswer:
    """Are requests taken? Not any more while it stops."""
    if service.gate.closed:
        raise stopping()
    return HealthAnswer(status="ok")
