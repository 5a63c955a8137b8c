"""The access log: one line per request."""

import logging
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote

log = logging.getLogger(__name__)


def log_request(scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
    """Log the client, the method, the path, the status and the duration of a request.

    The line of an error ends with its kind, for example "deadline". No line contains the query
    string, because it can contain an API key.
    """
    client = (scope.get("client") or ("-",))[0]
    path = escape_path(scope)
    kind = f" {scope['error_kind']}" if "error_kind" in scope else ""
    log.info('%s "%s %s" %d %.1f ms%s', client, scope["method"], path, status, 1000 * seconds, kind)


def escape_path(scope: MutableMapping[str, Any]) -> str:
    """Return the path of a request for a log.

    Special characters are escaped, so that a request cannot forge lines.
    """
    return quote(scope["path"], safe="/:@")
