"""The LibreTranslate API, so that existing LibreTranslate clients work unchanged."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seqloom.core.errors import DataError, SeqloomError
from seqloom.serving.api.languages.codes import match_language
from seqloom.serving.api.languages.detection import (
    DetectedLanguage,
    detect_common_language,
    detect_languages,
)
from seqloom.serving.api.schemas.option_fields import Text
from seqloom.serving.api.schemas.predictions import TranslateRequest
from seqloom.serving.api.schemas.validation import describe_fields, invalid_fields
from seqloom.serving.api.translation import check_translation, translate
from seqloom.serving.errors import ApiError, ErrorResponse, wrong_content_type
from seqloom.serving.server.api_keys import bearer_token
from seqloom.serving.server.service import Service, ServiceDependency, media_type
from seqloom.text.documents.formats import SUFFIXES
from seqloom.text.documents.html import html_parts
from seqloom.text.documents.parts import Part, fill, sources
from seqloom.text.language_names import language_name

AUTO = "auto"
FORMATS = ("text", "html")
API_KEY = "API key. Needed only if the server requires keys."
URL_ENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
OPTIONAL_KEY: list[dict[str, list[str]]] = [{}, {"HTTPBearer": []}]
"""For /openapi.json: the key can also be in the field `api_key`."""
LIBRETRANSLATE_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse} for status in (400, 403, 408, 413, 415, 503)
}

router = APIRouter(tags=["LibreTranslate"])


class LibreTranslateRequest(BaseModel):
    """A translation request as JSON or as a form. Unknown fields are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        json_schema_extra={
            "examples": [{"q": "Das gefällt mir.", "source": "auto", "target": "en"}]
        },
    )

    q: Text | list[Text] = Field(
        description="The text to translate, or a list of texts.", examples=["Das gefällt mir."]
    )
    source: Text = Field(AUTO, description="Source language, or auto.", examples=["de"])
    target: Text = Field(description="Target language.", examples=["en"])
    format: Text = Field(
        "text", description="text, or html: the text between the tags is translated."
    )
    alternatives: int = Field(
        0, ge=0, description="Number of translations besides the best one.", examples=[2]
    )
    api_key: Text | None = Field(None, description=API_KEY)


class DetectRequest(BaseModel):
    """A language detection request as JSON or as a form. Unknown fields are ignored."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, json_schema_extra={"examples": [{"q": "Das gefällt mir."}]}
    )

    q: Text | list[Text] = Field(description="The text, or a list of texts.", examples=["Hund"])
    api_key: Text | None = Field(None, description=API_KEY)


class LibreTranslateResponse(BaseModel):
    """The translation of a text, or those of a list of texts."""

    translatedText: str | list[str] = Field(description="The translation; a list for a list `q`.")
    alternatives: list[str] | list[list[str]] | None = Field(
        None, description="The next best translations, if the request has `alternatives`."
    )
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(
        None, description="The detected language, if `source` is auto."
    )


class Language(BaseModel):
    """A language of the service."""

    code: str = Field(description="Code of the language, such as de.")
    name: str = Field(description="English name of the language.")
    targets: list[str] = Field(description="Codes of the languages it can be translated into.")


def describe_body(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the /openapi.json description of a request body that can be JSON or a form."""
    content = {"schema": schema.model_json_schema()}
    types = ("application/json", URL_ENCODED, MULTIPART)
    body = {"required": True, "content": dict.fromkeys(types, content)}
    return {"requestBody": body, "security": OPTIONAL_KEY}


@router.post(
    "/translate",
    responses=LIBRETRANSLATE_ERRORS,
    response_model_exclude_none=True,
    openapi_extra=describe_body(LibreTranslateRequest),
)
async def post_translate(
    http_request: Request, service: ServiceDependency
) -> LibreTranslateResponse:
    """Translate a text or, in JSON, a list of texts."""
    request = await _parse_body(http_request, LibreTranslateRequest)
    check_key(service, http_request, request.api_key)
    if request.format not in FORMATS:
        raise bad_request(f"format: '{request.format}' is unknown; use text or html")
    if request.alternatives > service.limits.alternatives:
        raise bad_request(
            f"alternatives: {request.alternatives} is too large; the limit is "
            f"{service.limits.alternatives}"
        )
    texts = [request.q] if isinstance(request.q, str) else request.q
    if not any(text.strip() for text in texts):
        raise bad_request("q: contains only white space; send some text")
    service.limits.check_texts("q", texts)
    async with service.admission.admit():
        documents = None
        if request.format == "html":
            documents = await asyncio.to_thread(_parse_html, texts)
        detected = None
        if request.source.lower() == AUTO:
            samples = texts if documents is None else map(_visible_text, texts, documents)
            detected = await detect_common_language(service, list(samples))
        source = request.source if detected is None else detected.language
        if documents is None:
            translations = await translate_n_best(service, request, texts, source)
        else:
            translations = [
                await _translate_html(service, request, parts, source) for parts in documents
            ]
    if isinstance(request.q, str):
        return LibreTranslateResponse(
            translatedText=translations[0][0],
            alternatives=translations[0][1:] if request.alternatives else None,
            detectedLanguage=detected,
        )
    return LibreTranslateResponse(
        translatedText=[outputs[0] for outputs in translations],
        alternatives=[outputs[1:] for outputs in translations] if request.alternatives else None,
        detectedLanguage=None if detected is None else [detected] * len(texts),
    )


async def translate_n_best(
    service: Service, request: LibreTranslateRequest, texts: list[str], source: str
) -> list[list[str]]:
    """Return a list for each text of an admitted request: its best translation, then the
    alternatives.
    """
    source, target = served_languages(service, source, request.target)
    fields = {"texts": texts, "source": source, "target": target}
    translate_request = TranslateRequest.model_validate(
        {**fields, "n_best": 1 + request.alternatives}
    )
    with libretranslate_errors():
        check_translation(service, translate_request)
        # The response has no scores, so the engine does not have to compute probabilities.
        response = await translate(service, translate_request, probabilities="none")
    return [[text.text, *text.alternatives] for text in response.translations]


@contextmanager
def libretranslate_errors() -> Iterator[None]:
    """Give errors that have status 422 in the routes under /api the status 400, as LibreTranslate."""
    try:
        yield
    except SeqloomError as error:
        raise ApiError(400, "unusable", str(error)) from error
    except ApiError as error:
        status = 400 if error.status == 422 else error.status
        raise ApiError(status, error.kind, str(error), error.details, error.headers) from error


async def _translate_html(
    service: Service, request: LibreTranslateRequest, parts: list[Part], source: str
) -> list[str]:
    """Return the best translation of a parsed HTML text, then the alternatives. The tags are kept.

    If a part of the text has fewer alternatives than other parts, its last alternative is repeated.
    """
    served_languages(service, source, request.target)
    texts = sources(parts)
    outputs: list[list[str]] = []
    for start in range(0, len(texts), service.limits.texts):
        some = texts[start : start + service.limits.texts]
        outputs += await translate_n_best(service, request, some, source)
    count = max(map(len, outputs), default=1)
    return [
        fill(parts, [options[min(rank, len(options) - 1)] for options in outputs])
        for rank in range(count)
    ]


def _parse_html(texts: list[str]) -> list[list[Part]]:
    """Parse HTML texts. Raises a 400 error if one of them is invalid."""
    try:
        return [list(html_parts(text, "q")) for text in texts]
    except DataError as error:
        raise bad_request(str(error)) from error


def _visible_text(html: str, parts: list[Part]) -> str:
    """Return the text between the tags; all of `html` if there is no text between tags."""
    return " ".join(sources(parts)) or html


@router.get("/languages")
async def get_languages(service: ServiceDependency) -> list[Language]:
    """List all languages of the service, each with its available target languages."""
    pairs = service.catalogue.language_pairs
    codes = dict.fromkeys(code for pair in pairs for code in (pair.source, pair.target))
    return [
        Language(
            code=code,
            name=language_name(code),
            targets=sorted({pair.target for pair in pairs if pair.source == code}),
        )
        for code in codes
    ]


@router.post("/detect", responses=LIBRETRANSLATE_ERRORS, openapi_extra=describe_body(DetectRequest))
async def post_detect(
    http_request: Request, service: ServiceDependency
) -> list[DetectedLanguage] | list[list[DetectedLanguage]]:
    """Detect the language of a text. Returns the possible languages, likeliest first.

    For a list of texts, returns a list of such lists.
    """
    request = await _parse_body(http_request, DetectRequest)
    check_key(service, http_request, request.api_key)
    texts = [request.q] if isinstance(request.q, str) else request.q
    if not texts or not all(text.strip() for text in texts):
        raise bad_request("q: contains only white space; send some text")
    service.limits.check_texts("q", texts)
    async with service.admission.admit():
        languages = await detect_languages(service, texts)
    return languages[0] if isinstance(request.q, str) else languages


@router.post("/suggest", responses=LIBRETRANSLATE_ERRORS)
async def post_suggestion(http_request: Request, service: ServiceDependency) -> None:
    """Reject a suggested translation. The server stores no suggestions."""
    check_key(service, http_request, None)
    raise ApiError(403, "unusable", "this server does not accept suggestions")


@router.get("/spec")
async def get_spec(http_request: Request) -> dict[str, Any]:
    """Return the OpenAPI description of all routes, the same as /openapi.json."""
    description: dict[str, Any] = http_request.app.openapi()
    return description


@router.get("/frontend/settings")
async def get_settings(service: ServiceDependency) -> dict[str, Any]:
    """Return the settings that the web page of LibreTranslate requests."""
    pairs = service.catalogue.language_pairs
    source, target = (pairs[0].source, pairs[0].target) if pairs else (None, None)
    return {
        "apiKeys": bool(service.keys.digests),
        "charLimit": service.limits.characters,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": bool(service.keys.digests),
        "language": {
            side: {"code": code, "name": language_name(code)} if code else None
            for side, code in (("source", source), ("target", target))
        },
        "suggestions": False,
        "supportedFilesFormat": list(SUFFIXES),
    }


RequestModel = TypeVar("RequestModel", bound=BaseModel)


async def _parse_body(http_request: Request, model: type[RequestModel]) -> RequestModel:
    """Parse and validate the fields of a request.

    The fields are in the query string and in the body, which is JSON or a form. If a field occurs
    in both, the value in the body is used.
    """
    fields = _join_repeated(http_request.query_params.multi_items())
    content_type = media_type(http_request)
    if content_type == "application/json":
        try:
            content = json.loads(await http_request.body())
        except (ValueError, RecursionError) as error:
            raise ApiError(
                400, "invalid-json", f"the body is not valid JSON: {error}; send one JSON object"
            ) from error
        if not isinstance(content, dict):
            raise bad_request('the body must be one JSON object such as {"q": …}')
        fields |= content
    elif content_type == URL_ENCODED:
        fields |= _parse_form(await http_request.body())
    elif content_type == MULTIPART:
        fields |= _join_repeated((await http_request.form()).multi_items())
    elif content_type or await http_request.body() or not fields:
        raise wrong_content_type(
            "JSON or a form, and the Content-Type header must say which", content_type
        )
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise bad_request(describe_fields(invalid_fields(error.errors()))) from error


def _parse_form(body: bytes) -> dict[str, Any]:
    """Parse a URL-encoded form in UTF-8.

    Letters such as "ü" may also be unescaped, because `curl -d` does not escape them.
    """
    try:
        return _join_repeated(parse_qsl(body.decode(), keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError as error:
        raise bad_request(f"the form is not valid UTF-8: {error}; encode it as UTF-8") from error


def _join_repeated(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a form. A field that occurs several times becomes a list."""
    fields: dict[str, Any] = {}
    for name, value in items:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


def served_languages(service: Service, source: str, target: str) -> tuple[str, str]:
    """Return the codes of the languages as the service spells them.

    For example, if a client sends "en-US" and the service offers "en", returns "en" for it.

    Raises a 400 error if a language is not served.
    """
    pairs = service.catalogue.language_pairs
    codes = {code for pair in pairs for code in (pair.source, pair.target)}
    found = [match_language(code, codes) for code in (source, target)]
    for side, requested, code in zip(("source", "target"), (source, target), found, strict=True):
        if code is None:
            available = ", ".join(sorted(codes)) or (
                "none; start the server with --languages, for example --languages de:en"
            )
            raise bad_request(
                f"{side}: {requested} is not supported; available languages: {available}"
            )
    return str(found[0]), str(found[1])


def check_key(service: Service, http_request: Request, field: str | None) -> None:
    """Raise a 403 error if the API key of a request is missing or wrong.

    The key is in the field `api_key` of the body, in the query string or in the Authorization
    header.

    field: value of the field `api_key`
    """
    query = http_request.query_params.get("api_key")
    key = field or query or bearer_token(http_request.headers.get("authorization"))
    try:
        service.keys.check(key)
    except ApiError as error:
        raise ApiError(403, error.kind, str(error)) from error


def bad_request(message: str) -> ApiError:
    return ApiError(400, "invalid", message)
