"""Checks of the Host and Origin headers, against attacks by web pages of other origins.

DNS rebinding: the owner of evil.example changes its DNS entry to 127.0.0.1. The browser then sends
the requests of a page on evil.example to this server and gives the page the responses. Such requests
have the header `Host: evil.example`, so the server accepts only known host names. It also accepts
IP addresses, because they have no DNS entry.

Cross-origin requests: a web page can send forms to any server. Browsers mark such requests with the
headers `Sec-Fetch-Site` and `Origin`, so the server can reject them.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from seqloom.serving.errors import ApiError
from seqloom.serving.http.options import ANY, HttpOptions

READING_METHODS = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing and start no computation. A page of another origin can send such
requests, but the browser does not let it read the responses."""
_HOST_HEADER = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]*)?")


def check_access(scope: Scope, options: HttpOptions) -> None:
    """Raise a 421 error for an unknown host name, and a 403 error for an unknown origin.

    Requests that only read (GET, HEAD and OPTIONS) may come from any origin.
    """
    headers = Headers(scope=scope)
    for host in headers.getlist("host"):
        if not is_known_host(host, options):
            raise ApiError(
                421,
                "wrong-host",
                f"the server does not accept the host name {host!r}; start it with --allow-host "
                "and this name, or use its IP address",
            )
    if scope["method"] not in READING_METHODS and not is_known_origin(headers, options):
        raise ApiError(
            403,
            "wrong-origin",
            f"the server does not accept requests from pages of {headers.get('origin') or 'other sites'}"
            "; start it with --allow-origin and the origin of the page",
        )


def is_known_host(header: str, options: HttpOptions) -> bool:
    """True if the value of a Host header is an IP address, localhost or an accepted name."""
    match = _HOST_HEADER.fullmatch(header.lower())
    if match is None:
        return False
    name = match["name"].removesuffix(".")
    if name == "localhost" or name.endswith(".localhost") or name in options.hosts:
        return True
    return ANY in options.hosts or _is_ip_address(name)


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def is_known_origin(headers: Headers, options: HttpOptions) -> bool:
    """True if the server may accept a request, judged by the web page that sent it.

    The page must belong to this server or to an accepted origin. Requests that no page sent, such as
    those of curl, are accepted too.

    Most browsers state in `Sec-Fetch-Site` whether a page belongs to this server. Without this
    header, the host in `Origin` must equal `Host` or `X-Forwarded-Host`. A proxy that changes
    `Host` must send the original value as `X-Forwarded-Host`. Pages of other origins cannot set
    these headers.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site in ("same-origin", "none") or (origin is None and site is None):
        return True
    if ANY in options.origins or (origin or "").lower() in options.origins:
        return True
    if site is not None or origin is None:
        return False
    own_hosts = {headers.get("host"), headers.get("x-forwarded-host")}
    return urlsplit(origin).netloc in own_hosts - {None, ""}
