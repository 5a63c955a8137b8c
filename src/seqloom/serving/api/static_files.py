"""The files of the web page: /, /docs and /static/.

The components that draw are files of `seqloom.viz`, which also writes them into exported pages.

This module does not import torch, because the server serves the page while models load.
"""

import hashlib
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Response

from seqloom.serving.errors import ApiError

STATIC = Path(__file__).parents[1] / "static"
COMPONENTS = Path(__file__).parents[2] / "viz" / "components"
"""Folder of the files below /static/components/."""
PAGES = {"/": "index.html", "/docs": "docs.html"}
MEDIA_TYPES = {
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

router = APIRouter()
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match")]


@router.get("/", include_in_schema=False)
async def get_index(if_none_match: IfNoneMatch = None) -> Response:
    return _existing_file("/", if_none_match)


@router.get("/docs", include_in_schema=False)
async def get_docs(if_none_match: IfNoneMatch = None) -> Response:
    return _existing_file("/docs", if_none_match)


@router.get("/static/{name:path}", include_in_schema=False)
async def get_static_file(name: str, if_none_match: IfNoneMatch = None) -> Response:
    return _existing_file(f"/static/{name}", if_none_match)


def _existing_file(path: str, if_none_match: str | None) -> Response:
    response = static_response(path, if_none_match)
    if response is None:
        raise ApiError(404, "not-found", "there is no such file; the page is at /")
    return response


def static_response(path: str, if_none_match: str | None) -> Response | None:
    """Return a response with the file at a URL path, or None if there is no such file.

    If the client already has the current version, the response has status 304 and no content.

    if_none_match: value of the If-None-Match header
    """
    file = _find_file(PAGES.get(path) or path.removeprefix("/static/"))
    if file is None or not (path in PAGES or path.startswith("/static/")):
        return None
    # The files are small enough to read in the event loop.
    content = file.read_bytes()
    etag = f'"{hashlib.sha256(content).hexdigest()}"'
    headers = {"Cache-Control": "no-cache", "ETag": etag}
    if if_none_match is not None and etag in if_none_match:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=MEDIA_TYPES[file.suffix], headers=headers)


def _find_file(name: str) -> Path | None:
    """Return the file of a known type with this name below /static/, or None.

    Symbolic links to files outside the folders of the page are rejected.
    """
    folder, _, rest = name.partition("/")
    root, inside = (COMPONENTS, rest) if folder == "components" else (STATIC, name)
    path = root / inside
    if "\0" in name or path.suffix not in MEDIA_TYPES:
        return None
    try:
        return path if path.resolve().is_relative_to(root.resolve()) and path.is_file() else None
    except OSError:  # the name is too long for the file system
        return None
