"""Pages and signs of life. Everything comes from this folder; nothing from outside."""

import hashlib
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Response

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
Seen = Annotated[str | None, Header(alias="If-None-Match")]
router = APIRouter()


def _file(path: Path, seen: str | None) -> Response:
    """The file, or word that whoever asks has it already. Small ones need no thread of their own."""
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if seen is not None and tag in seen:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=TYPES[path.suffix], headers=headers)


@router.get("/", include_in_schema=False)
async def index(seen: Seen = None) -> Response:
    return _file(STATIC / "index.html", seen)


@router.get("/docs", include_in_schema=False)
async def docs(seen: Seen = None) -> Response:
    return _file(STATIC / "docs.html", seen)


@router.get("/static/{name:path}", include_in_schema=False)
async def static(name: str, seen: Seen = None) -> Response:
    """A file of the folder, and no other: no links, nothing above it, nothing of another type."""
    path = STATIC / name
    if "\0" in name or path.suffix not in TYPES or not _inside(path):
        raise Problem(404, "not-found", "there is no such file; the page is at /")
    return _file(path, seen)


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
