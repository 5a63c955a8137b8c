"""The access log: one line per request."""

import logging
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote

log = logging.getLogger(__name__)


def log_request(scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
    """Log the client, the method, the path, the status and the duration of a request.

    The line does not contain the query string, because it can contain an API key. Special characters
    of the path are escaped, so that a request cannot forge lines.
    """
    client = (scope.get("client") or ("-",))[0]
    path = quote(scope["path"], safe="/:@")
    log.info('%s "%s %s" %d %.1f ms', client, scope["method"], path, status, 1000 * seconds)
