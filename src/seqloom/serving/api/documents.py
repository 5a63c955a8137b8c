"""LibreTranslate's routes for files: POST /translate_file and GET /download_file/…"""

import asyncio
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field
from starlette.datastructures import FormData, UploadFile

from seqloom.inference.options import TEXT_ONLY
from seqloom.serving.api.decoding import choose_decoding
from seqloom.serving.api.languages.detection import detect_common_language
from seqloom.serving.api.libretranslate import (
    API_KEY,
    AUTO,
    LIBRETRANSLATE_ERRORS,
    MULTIPART,
    OPTIONAL_KEY,
    bad_request,
    check_key,
    libretranslate_errors,
    served_languages,
)
from seqloom.serving.api.translation import choose_direction, search_segments
from seqloom.serving.errors import ApiError, ErrorResponse, wrong_content_type
from seqloom.serving.http.stack import HEAD_KEY
from seqloom.serving.server.service import Service, ServiceDependency, media_type
from seqloom.text.documents.formats import SUFFIXES, Document, document_format, read_document

FILE = "application/octet-stream"

router = APIRouter(tags=["LibreTranslate"])


class TranslatedFileResponse(BaseModel):
    """Where the translated file can be downloaded."""

    translatedFileUrl: str = Field(description="Address of the file. It works once.")


FORM = {
    "type": "object",
    "properties": {
        "file": {
            "type": "string",
            "format": "binary",
            "description": f"The document. Its name ends in {', '.join(SUFFIXES)}.",
        },
        "source": {"type": "string", "description": "Source language. Default: auto."},
        "target": {"type": "string", "description": "Target language."},
        "api_key": {"type": "string", "description": API_KEY},
    },
    "required": ["file", "target"],
    "examples": [{"file": "letter.txt", "source": "auto", "target": "en"}],
}


@dataclass(frozen=True)
class UploadedFile:
    """A file of a request, and the languages to translate from and to.

    source: source language, or auto
    """

    name: str
    content: bytes
    source: str
    target: str


@router.post(
    "/translate_file",
    responses=LIBRETRANSLATE_ERRORS,
    openapi_extra={
        "requestBody": {"required": True, "content": {MULTIPART: {"schema": FORM}}},
        "security": OPTIONAL_KEY,
    },
)
async def post_translate_file(
    http_request: Request, service: ServiceDependency
) -> TranslatedFileResponse:
    """Translate a document: plain text, Markdown, HTML or SRT subtitles, in UTF-8.

    The response has the address of the translated file, which can be downloaded once.
    """
    if (content_type := media_type(http_request)) != MULTIPART:
        raise wrong_content_type(f"a form with a file ({MULTIPART})", content_type)
    async with http_request.form() as form:
        check_key(service, http_request, _text_field(form, "api_key"))
        with libretranslate_errors():
            uploaded = await _read_form(form)
            async with service.admission.admit():
                target, content = await _translate(service, uploaded)
    path = PurePosixPath(uploaded.name)
    name = f"{path.stem}_{target}{path.suffix}"
    token = await asyncio.to_thread(service.files.add, name, content)
    url = public_url(http_request, f"/download_file/{token}")
    return TranslatedFileResponse(translatedFileUrl=url)


def public_url(request: Request, path: str) -> str:
    """Return the address under which the client reaches a path of this server.

    Behind a proxy, the header `X-Forwarded-Proto` says which protocol the client uses.
    """
    scheme = request.headers.get("x-forwarded-proto", "")
    base = request.base_url.replace(scheme=scheme if scheme == "https" else "http")
    return f"{str(base).rstrip('/')}{request.app.state.root_path}{path}"


def _text_field(form: FormData, name: str) -> str | None:
    value = form.get(name)
    return value if isinstance(value, str) and value else None


async def _read_form(form: FormData) -> UploadedFile:
    """Read the file and the languages of a request.

    Raises a 400 error if a field is missing or if the file has an unknown suffix.
    """
    file, target = form.get("file"), _text_field(form, "target")
    problems = [] if isinstance(file, UploadFile) else ["file: this field is required"]
    problems += [] if target else ["target: this field is required"]
    if problems or not isinstance(file, UploadFile) or target is None:
        raise bad_request("; ".join(problems))
    name = PureWindowsPath(file.filename or "").name  # without folders of either form
    if PurePosixPath(name).suffix.lower() not in SUFFIXES:
        raise bad_request(f"file: the name must end in {', '.join(SUFFIXES)}, not {name!r}")
    source = _text_field(form, "source") or AUTO
    return UploadedFile(name, await file.read(), source, target)


async def _translate(service: Service, uploaded: UploadedFile) -> tuple[str, bytes]:
    """Translate the file of an admitted request.

    Its texts are split into segments and translated. Returns the code of the target language and
    the content of the translated file.
    """
    name = uploaded.name
    document = await asyncio.to_thread(read_document, uploaded.content, name, document_format(name))
    source = uploaded.source
    if source == AUTO:
        source = await _detect_language(service, document)
    source, target = served_languages(service, source, uploaded.target)
    direction = choose_direction(service, None, source, target)
    run, texts = direction.loaded.token_run, document.sources
    decoding = choose_decoding(run, TEXT_ONLY)
    prepared = await asyncio.to_thread(run.prepare_texts, texts, TEXT_ONLY, decoding, direction.tag)
    outputs = await search_segments(direction.loaded, prepared, decoding, TEXT_ONLY)
    best = [text.finish(attention=False)[0].text for text in outputs]
    return target, await asyncio.to_thread(document.fill, best)


async def _detect_language(service: Service, document: Document) -> str:
    sample = " ".join(document.sources).strip()[: service.limits.characters]
    if not sample:
        raise bad_request("file: contains no text, so its language cannot be detected; set source")
    return (await detect_common_language(service, [sample])).language


@router.get(
    "/download_file/{token}",
    response_class=Response,
    responses={
        200: {"content": {FILE: {"schema": {"type": "string", "format": "binary"}}}},
        404: {"model": ErrorResponse},
        422: {"model": ErrorResponse},
    },
)
async def get_translated_file(
    http_request: Request,
    token: Annotated[str, Path(description="Last part of `translatedFileUrl`.")],
    service: ServiceDependency,
) -> Response:
    """Download a translated file. The server then removes it."""
    # A HEAD request, for example of a link preview, does not remove the file.
    is_head = HEAD_KEY in http_request.scope
    read = service.files.get if is_head else service.files.take
    file = await asyncio.to_thread(read, token)
    if file is None:
        raise ApiError(
            404,
            "not-found",
            "there is no such file: it was downloaded already, or too much time has passed; "
            "translate it again",
        )
    disposition = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
    return Response(
        file.content,
        media_type=FILE,
        headers={"Content-Disposition": disposition, "Cache-Control": "no-store"},
    )
