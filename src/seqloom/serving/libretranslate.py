"""The interface of LibreTranslate, so that its clients can be used as they are."""

import json
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seqloom.serving.detecting import Detected, common_language, guesses
from seqloom.serving.languages import name_of
from seqloom.serving.problems import ErrorAnswer, Problem, quoted
from seqloom.serving.schema import Text, TranslateRequest
from seqloom.serving.service import Service, service_of
from seqloom.serving.translating import translate

AUTO = "auto"
ENCODED, PARTS = FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 403, 408, 413, 415, 503)
}
Used = Annotated[Service, Depends(service_of)]
router = APIRouter(tags=["LibreTranslate"])


class Question(BaseModel):
    """What clients send, as JSON or as a form. What others might mean by further fields is unknown
    here, so they are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    q: Text | list[Text]
    source: Text = AUTO
    target: Text
    format: Text = "text"
    alternatives: int = Field(0, ge=0)
    api_key: Text | None = None


class DetectQuestion(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    q: Text
    api_key: Text | None = None


class Answer(BaseModel):
    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detected | list[Detected] | None = None


class Language(BaseModel):
    code: str
    name: str
    targets: list[str]


def body_of(schema: type[BaseModel]) -> dict[str, Any]:
    """What a route takes, for /openapi.json: JSON, or a form."""
    content = {"schema": schema.model_json_schema()}
    types = ("application/json", *FORMS)
    return {"requestBody": {"required": True, "content": dict.fromkeys(types, content)}}


@router.post(
    "/translate",
    responses=REFUSALS,
    response_model_exclude_none=True,
    openapi_extra=body_of(Question),
)
async def translate_texts(request: Request, service: Used) -> Answer:
    """Translate a text, or in JSON a list of them."""
    asked = Question.model_validate(await _given(request, Question))
    _check_key(service, request, asked.api_key)
    if asked.format != "text":
        raise _refused(
            f"format: '{asked.format}' is not supported, since tags would be translated as if they "
            "were words; send plain text with format = 'text'"
        )
    if asked.alternatives > service.limits.alternatives:
        raise _refused(f"alternatives: at most {service.limits.alternatives} here")
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    if not any(text.strip() for text in texts):
        raise _refused("q: there is nothing to translate; give some text")
    detected = await common_language(service, texts) if asked.source == AUTO else None
    source = asked.source if detected is None else detected.language
    found = await _translated(service, texts, source, asked)
    one = isinstance(asked.q, str)
    return Answer(
        translatedText=found[0][0] if one else [each[0] for each in found],
        alternatives=_alternatives(found, asked.alternatives, one),
        detectedLanguage=detected if one or detected is None else [detected] * len(texts),
    )


async def _translated(
    service: Service, texts: list[str], source: str, asked: Question
) -> list[list[str]]:
    """The best translation of each text, and the alternatives behind it."""
    _check_languages(service, source, asked.target)
    wanted = TranslateRequest(
        texts=texts, source=source, target=asked.target, n_best=1 + asked.alternatives
    )
    try:
        answer = await translate(service, wanted, probabilities="none")
    except Problem as problem:
        status = 400 if problem.status == 422 else problem.status
        raise Problem(
            status, problem.kind, str(problem), problem.details, problem.headers
        ) from problem
    return [[each.text, *each.alternatives] for each in answer.translations]


def _alternatives(
    found: list[list[str]], wanted: int, one: bool
) -> list[str] | list[list[str]] | None:
    if not wanted:
        return None
    return found[0][1:] if one else [each[1:] for each in found]


@router.get("/languages")
async def languages(service: Used) -> list[Language]:
    """Languages that are read, and what each can be translated into."""
    pairs = [pair for served in service.catalogue.runs for pair in served.pairs]
    codes = dict.fromkeys(code for pair in pairs for code in (pair.source, pair.target))
    return [
        Language(
            code=code,
            name=name_of(code),
            targets=sorted({pair.target for pair in pairs if pair.source == code}),
        )
        for code in codes
    ]


@router.post("/detect", responses=REFUSALS, openapi_extra=body_of(DetectQuestion))
async def detect(request: Request, service: Used) -> list[Detected]:
    """The language of a text, likeliest first."""
    asked = DetectQuestion.model_validate(await _given(request, DetectQuestion))
    _check_key(service, request, asked.api_key)
    if not asked.q.strip():
        raise _refused("q: there is nothing in it; give some text")
    service.check_texts("q", [asked.q])
    return await guesses(service, asked.q)


@router.get("/frontend/settings")
async def settings(service: Used) -> dict[str, Any]:
    """What a page of LibreTranslate asks when it opens."""
    pairs = [pair for served in service.catalogue.runs for pair in served.pairs]
    first = pairs[0] if pairs else None
    chosen = {
        side: {"code": code, "name": name_of(code)} if code else None
        for side, code in (
            ("source", first and first.source),
            ("target", first and first.target),
        )
    }
    return {
        "apiKeys": bool(service.keys.digests),
        "charLimit": service.limits.characters,
        "filesTranslation": False,
        "frontendTimeout": 500,
        "keyRequired": bool(service.keys.digests),
        "language": chosen,
        "suggestions": False,
        "supportedFilesFormat": [],
    }


async def _given(request: Request, schema: type[BaseModel]) -> dict[str, Any]:
    """The fields of a body, of whichever type; or a sentence about what is wrong with it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        try:
            found = json.loads(await request.body())
        except (ValueError, RecursionError) as error:
            raise Problem(
                400, "invalid-json", f"the body is no valid JSON: {error}; send one JSON object"
            ) from error
        if not isinstance(found, dict):
            raise _refused('the body must be one JSON object, as {"q": …}')
    elif kind == ENCODED:
        found = _fields(await request.body())
    elif kind == PARTS:
        found = dict(await request.form())
    else:
        raise Problem(
            415,
            "wrong-type",
            f"the body must be JSON or a form, and say so by its Content-Type, not {quoted(kind)}",
        )
    try:
        schema.model_validate(found)
    except ValidationError as error:
        wrong = [
            f"{one['loc'][0]}: {'is missing' if one['type'] == 'missing' else one['msg']}"
            for one in error.errors()
        ]
        raise _refused("; ".join(dict.fromkeys(wrong))) from error
    return found


def _fields(body: bytes) -> dict[str, Any]:
    """Of an encoded form. Many send letters as they are, where the standard wants them escaped:
    all of it is UTF-8."""
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError as error:
        raise _refused(f"the form is not valid UTF-8: {error}; encode it as UTF-8") from error


def _check_languages(service: Service, source: str, target: str) -> None:
    pairs = [pair for served in service.catalogue.runs for pair in served.pairs]
    codes = {code for pair in pairs for code in (pair.source, pair.target)}
    for side, code in (("source", source), ("target", target)):
        if code not in codes:
            known = ", ".join(sorted(codes)) or (
                "none; start the service with --languages, as --languages de:en"
            )
            raise _refused(f"{side}: {code} is not supported; there are: {known}")


def _check_key(service: Service, request: Request, given: str | None) -> None:
    """As a field, as clients of LibreTranslate send it, or in the address or the header."""
    header = request.headers.get("authorization", "")
    key = given or request.query_params.get("api_key") or header.removeprefix("Bearer ").strip()
    try:
        service.keys.check(key or None)
    except Problem as problem:
        raise Problem(403, problem.kind, str(problem)) from problem


def _refused(sentence: str) -> Problem:
    return Problem(400, "invalid", sentence)
