"""The state that all request handlers share, and the FastAPI dependencies that provide it."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from seqloom.serving.errors import wrong_content_type
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.api_keys import ApiKeys, bearer_token
from seqloom.serving.server.catalogue import Catalogue
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.translated_files import TranslatedFiles


@dataclass(frozen=True)
class Service:
    """What all request handlers share: runs, limits, API keys and translated files.

    catalogue: the loaded runs
    limits:    limits of requests, such as the maximum size
    admission: limits how many requests run and wait at the same time
    files:     translated files that clients have not downloaded yet
    keys:      the accepted API keys; if there are none, requests need no key
    """

    catalogue: Catalogue
    limits: Limits
    admission: AdmissionControl
    files: TranslatedFiles
    keys: ApiKeys = field(default_factory=ApiKeys)


# The dependencies are `async`, because FastAPI runs other dependencies in a thread pool, which
# takes about a millisecond for each of them.
async def get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


BearerToken = Annotated[
    HTTPAuthorizationCredentials | None,
    Security(HTTPBearer(auto_error=False, description="API key, if the server requires keys.")),
]
"""Describes the key in /openapi.json. `require_api_key` checks it."""


async def require_api_key(request: Request, described: BearerToken) -> None:
    service = await get_service(request)
    service.keys.check(bearer_token(request.headers.get("authorization")))


def media_type(request: Request) -> str:
    """Return the content type of a request without its parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def require_json(request: Request) -> None:
    """Reject a request that is not JSON before FastAPI tries to parse its body."""
    if (content_type := media_type(request)) != "application/json":
        raise wrong_content_type("JSON, sent with 'Content-Type: application/json'", content_type)


ServiceDependency = Annotated[Service, Depends(get_service)]
WITH_KEY = [Depends(require_api_key)]
WITH_KEY_AND_JSON = [Depends(require_api_key), Depends(require_json)]
