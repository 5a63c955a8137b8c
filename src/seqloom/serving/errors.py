"""Error responses.

Every error has the body {"error": message, "kind": name, "problems": [{"where", "what"}]}.
LibreTranslate clients read `error`; programs should test `kind`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.types import Scope

from seqloom.core.errors import SeqloomError
from seqloom.serving.api.schemas.validation import (
    describe_fields,
    invalid_fields,
    location_in_words,
)

ErrorKind = Literal[
    "invalid-json",
    "invalid",
    "unusable",
    "no-key",
    "wrong-key",
    "wrong-origin",
    "wrong-host",
    "not-found",
    "no-such-run",
    "wrong-method",
    "slow-body",
    "too-large",
    "wrong-type",
    "busy",
    "deadline",
    "starting",
    "stopping",
    "internal",
]


class ErrorDetail(BaseModel):
    """One invalid field: its name and what is wrong with it."""

    where: str = Field(description="Path of the field, for example texts[0].")
    what: str = Field(description="What is wrong with it.")


class ErrorResponse(BaseModel):
    """The body of every error response. `error` says what is wrong and what to do."""

    error: str = Field(description="What is wrong, and what to do.")
    kind: ErrorKind = Field(description="Kind of the error, for programs.")
    problems: list[ErrorDetail] = Field([], description="All invalid fields, if there are any.")


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "Invalid JSON, or an unknown language."},
    401: {"model": ErrorResponse, "description": "An API key is required."},
    403: {
        "model": ErrorResponse,
        "description": "The API key is wrong, or the request comes from a page of another origin.",
    },
    404: {"model": ErrorResponse, "description": "There is no such run."},
    408: {"model": ErrorResponse, "description": "The body arrived too slowly."},
    413: {"model": ErrorResponse, "description": "The body or one of its fields is too large."},
    415: {"model": ErrorResponse, "description": "The route does not accept this content type."},
    422: {"model": ErrorResponse, "description": "A field is invalid; the message names it."},
    503: {
        "model": ErrorResponse,
        "description": "The server is busy, starting or stopping, or the "
        "request took too long; try again.",
    },
}
"""Error responses of the routes under /api, as described in /openapi.json."""


class OpenAiErrorDetail(BaseModel):
    """What is wrong with a request, in the format of OpenAI."""

    message: str = Field(description="What is wrong, and what to do.")
    type: str = Field(description="invalid_request_error or server_error.")
    param: str | None = Field(description="The invalid field.")
    code: ErrorKind = Field(description="The kind of the error, as in the other routes.")


class OpenAiErrorResponse(BaseModel):
    """The body of an error response in the format of OpenAI."""

    error: OpenAiErrorDetail = Field(description="The error.")


OPENAI_PREFIX = "/v1/"
"""Errors of paths that begin so have the format of OpenAI."""
OPENAI_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {**response, "model": OpenAiErrorResponse}
    for status, response in ERROR_RESPONSES.items()
}
"""Error responses of the OpenAI routes."""


def openai_error_body(
    message: str, kind: ErrorKind, field: str | None = None, status: int = 422
) -> dict[str, Any]:
    error_type = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": error_type, "param": field, "code": kind}}


class ApiError(Exception):
    """Exception that becomes an HTTP error response. Middleware and routes raise it."""

    def __init__(
        self,
        status: int,
        kind: ErrorKind,
        message: str,
        details: Sequence[ErrorDetail] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind: ErrorKind = kind
        self.details = list(details)
        self.headers = dict(headers or {})

    def response(self, path: str) -> JSONResponse:
        """Return the error response to a request with this path.

        Under /v1/, the response has the format of OpenAI.
        """
        if path.startswith(OPENAI_PREFIX):
            field = self.details[0].where if self.details else None
            body = openai_error_body(str(self), self.kind, field, self.status)
        else:
            error = ErrorResponse(error=str(self), kind=self.kind, problems=self.details)
            body = error.model_dump(mode="json")
        return JSONResponse(body, self.status, self.headers)

    def response_to(self, scope: Scope) -> JSONResponse:
        """Return the response for this error. Store its kind in `scope`, for the access log."""
        scope["error_kind"] = self.kind
        return self.response(scope["path"])

    def last_event(self, path: str) -> str:
        """Return the event that ends a stream of the route `path` with this error."""
        if path.startswith(OPENAI_PREFIX):
            body = openai_error_body(str(self), self.kind, status=self.status)
            return f"data: {json.dumps(body)}\n\n"
        return format_event("error", {"error": str(self), "kind": self.kind})


def format_event(name: str, content: dict[str, Any]) -> str:
    """Return a server-sent event."""
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n"


def busy_error(message: str) -> ApiError:
    """Return a 503 error: the server has too many requests."""
    return ApiError(503, "busy", message, headers={"Retry-After": "1"})


def internal_error() -> ApiError:
    """Return a 500 error: an unexpected exception occurred."""
    return ApiError(500, "internal", "internal server error; see the server's log for details")


def stopping_error() -> ApiError:
    """Return a 503 error: the server is shutting down."""
    return ApiError(
        503,
        "stopping",
        "the server is stopping and accepts no new requests; try again in a few seconds",
        headers={"Retry-After": "5", "Connection": "close"},
    )


def invalid_field(field: str, message: str) -> ApiError:
    """Return a 422 error for a field whose value satisfies the schema, but cannot be used.

    Values that violate the schema do not get here. `handle_validation_error` reports them.
    """
    detail = ErrorDetail(where=field, what=message)
    return ApiError(422, "invalid", f"{location_in_words(field)}: {message}", [detail])


async def handle_api_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return error.response_to(request.scope)


async def handle_seqloom_error(request: Request, error: Exception) -> JSONResponse:
    """Respond with 422 to a SeqloomError.

    The request satisfies the schema, but the run cannot process it.
    """
    assert isinstance(error, SeqloomError)
    return ApiError(422, "unusable", str(error)).response_to(request.scope)


async def handle_validation_error(request: Request, error: Exception) -> JSONResponse:
    """Respond with 400 if the body is not valid JSON, and with 422 if it violates the schema."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if any(item["type"] == "json_invalid" for item in errors):
        reason = errors[0].get("ctx", {}).get("error", "it cannot be parsed")
        return ApiError(
            400, "invalid-json", f"the body is not valid JSON: {reason}; send one JSON object"
        ).response_to(request.scope)
    # The first part of a location is "body", "query" or "path".
    inner = [{**item, "loc": item["loc"][1:] or item["loc"]} for item in errors]
    fields = invalid_fields(inner)
    details = [ErrorDetail(where=field, what=message) for field, message in fields.items()]
    error = ApiError(422, "invalid", describe_fields(fields), details)
    return error.response_to(request.scope)


async def handle_http_exception(request: Request, error: Exception) -> JSONResponse:
    """Respond to an HTTP error of the framework, such as an unknown path (404) or method (405)."""
    assert isinstance(error, HTTPException)
    path, method = request.url.path, request.method
    match error.status_code:
        case 404:
            api_error = ApiError(
                404, "not-found", f"there is no route {path}; /docs lists all routes"
            )
        case 405:
            allowed = (error.headers or {}).get("Allow", "another method")
            api_error = ApiError(
                405,
                "wrong-method",
                f"{path} does not support {method}; use {allowed}",
                headers=error.headers,
            )
        case status:
            api_error = ApiError(status, "invalid", str(error.detail), headers=error.headers)
    return api_error.response_to(request.scope)


async def handle_internal_error(request: Request, error: Exception) -> JSONResponse:
    """Respond with 500 to an unexpected exception. Only the server's log contains the traceback."""
    return internal_error().response_to(request.scope)


def wrong_content_type(expected: str, content_type: str) -> ApiError:
    """Return the 415 error for a body with a wrong content type.

    expected: the accepted types, as the end of the sentence "the body must be …"
    """
    sent = f"'{content_type}'" if content_type else "no content type"
    return ApiError(415, "wrong-type", f"the body must be {expected}; the request has {sent}")
