"""Pages and signs of life. Everything comes from this folder; nothing from outside."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import FileResponse

from seqloom.serving.problems import ErrorAnswer, Problem, stopping
from seqloom.serving.schema import HealthAnswer
from seqloom.serving.service import Service, service_of

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
Used = Annotated[Service, Depends(service_of)]
router = APIRouter()


def _file(path: Path) -> FileResponse:
    return FileResponse(path, media_type=TYPES[path.suffix], headers={"Cache-Control": "no-cache"})


@router.get("/", include_in_schema=False)
async def index() -> FileResponse:
    return _file(STATIC / "index.html")


@router.get("/docs", include_in_schema=False)
async def docs() -> FileResponse:
    return _file(STATIC / "docs.html")


@router.get("/static/{name:path}", include_in_schema=False)
async def static(name: str) -> FileResponse:
    """A file of the folder, and no other: no links, nothing above it, nothing of another type."""
    path = STATIC / name
    if "\0" in name or path.suffix not in TYPES or not _inside(path):
        raise Problem(404, "not-found", "there is no such file; the page is at /")
    return _file(path)


def _inside(path: Path) -> bool:
    try:
        return path.resolve().is_relative_to(STATIC.resolve()) and path.is_file()
    except OSError:  # a name that is too long for any file
        return False


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
