"""Problem: an answer that is no result, with its status and a sentence that helps.

Every refusal has one form, {"error": sentence, "kind": name, "problems": […]}. Clients that know
LibreTranslate read `error`; programs ask for `kind`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from seqloom.core.errors import SeqloomError

Kind = Literal[
    "invalid-json",
    "invalid",
    "unusable",
    "no-key",
    "wrong-key",
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


class Detail(BaseModel):
    """One thing that is wrong with a request: where, and what."""

    where: str
    what: str


class ErrorAnswer(BaseModel):
    """Why there is no result, and what to do."""

    error: str
    kind: Kind
    problems: list[Detail] = []


class Problem(Exception):
    """Raised anywhere behind a route; becomes the answer."""

    def __init__(
        self,
        status: int,
        kind: Kind,
        message: str,
        details: Sequence[Detail] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind: Kind = kind
        self.details = list(details)
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        answer = ErrorAnswer(error=str(self), kind=self.kind, problems=self.details)
        return answer.model_dump(mode="json")

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status, self.headers)


def busy(message: str) -> Problem:
    """There is too much to do at the moment."""
    return Problem(503, "busy", message, headers={"Retry-After": "1"})


def stopping() -> Problem:
    """The service is about to end."""
    return Problem(
        503,
        "stopping",
        "the service is stopping and takes no new requests; try again in a few seconds",
        headers={"Retry-After": "5", "Connection": "close"},
    )


def invalid(where: str, what: str) -> Problem:
    """A field that the schema allows, and this service does not."""
    return Problem(422, "invalid", f"{where}: {what}", [Detail(where=where, what=what)])


def unusable(error: SeqloomError) -> Problem:
    """What was given is well formed, but the run cannot use it."""
    return Problem(422, "unusable", str(error))


async def tell_problem(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, Problem)
    return problem.response()


async def tell_unusable(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SeqloomError)
    return unusable(error).response()


async def tell_invalid(request: Request, error: Exception) -> JSONResponse:
    """What pydantic found, in sentences."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        reason = found[0].get("ctx", {}).get("error", "it cannot be parsed")
        return Problem(
            400, "invalid-json", f"the body is no valid JSON: {reason}; send one JSON object"
        ).response()
    details = [Detail(where=_place(one["loc"]), what=_told(one)) for one in found]
    sentence = "; ".join(f"{one.where}: {one.what}" for one in details)
    return Problem(422, "invalid", sentence, details).response()


def _place(location: Sequence[Any]) -> str:
    """("body", "texts", 0) -> texts[0]"""
    inner = location[1:] if len(location) > 1 else location
    first, *rest = inner
    return str(first) + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in rest)


def _told(found: Mapping[str, Any]) -> str:
    match found["type"]:
        case "missing":
            return "is missing; it must be given"
        case "extra_forbidden":
            return "there is no such field; /docs lists those there are"
        case _:
            message = str(found["msg"])
            return message[0].lower() + message[1:]


async def tell_http(request: Request, error: Exception) -> JSONResponse:
    """What the router says: nothing here, or not by this method."""
    assert isinstance(error, HTTPException)
    path, method = request.url.path, request.method
    match error.status_code:
        case 404:
            problem = Problem(
                404, "not-found", f"there is nothing at {path}; /docs lists all routes"
            )
        case 405:
            allowed = (error.headers or {}).get("Allow", "another method")
            problem = Problem(
                405,
                "wrong-method",
                f"{path} does not answer {method}; use {allowed}",
                headers=error.headers,
            )
        case status:
            problem = Problem(status, "invalid", str(error.detail), headers=error.headers)
    return problem.response()


async def tell_internal(request: Request, error: Exception) -> JSONResponse:
    """A mistake of ours: it is in the log, and its details are nobody else's business."""
    return Problem(
        500,
        "internal",
        "something went wrong inside the service; its log says what. This is not your fault",
    ).response()


def quoted(kind: str) -> str:
    """The type of a body, in a sentence."""
    return f"'{kind}'" if kind else "without a type"
