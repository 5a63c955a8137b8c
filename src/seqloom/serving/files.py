"""The page's files: what lies in one folder, and nothing else."""

import hashlib
from pathlib import Path

from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
PAGES = {"/": "index.html", "/docs": "docs.html"}
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


def file_at(address: str, seen: str | None) -> Response | None:
    """What lies at an address: a page, or a file under /static/. None: no file does.

    seen: the tag of what whoever asks has already
    """
    name = PAGES.get(address) or address.removeprefix("/static/")
    if name == address or not _is_one(name):
        return None
    # Small files need no thread of their own.
    content = (STATIC / name).read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if seen is not None and tag in seen:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=TYPES[(STATIC / name).suffix], headers=headers)


def _is_one(name: str) -> bool:
    """A file of the folder, and no other: no links, nothing above it, nothing of another type."""
    path = STATIC / name
    if "\0" in name or path.suffix not in TYPES:
        return False
    try:
        return path.resolve().is_relative_to(STATIC.resolve()) and path.is_file()
    except OSError:  # a name that is too long for any file
        return False
