"""Attacks through web pages and crafted requests."""

import gzip
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Route, expect

from seqloom.core.errors import ConfigError
from seqloom.serving.http.access_checks import is_known_host
from seqloom.serving.http.options import HttpOptions
from support.browsing import Visitor
from support.in_process_server import respond
from support.payloads import payloads
from support.server_process import ServerProcess, error_of

FORM = {"q": "a", "source": "la", "target": "it"}


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8000", "LOCALHOST.", "a.localhost", "127.0.0.1:80"),
        *("192.168.0.7", "[::1]:8000", "mt.example.org", "MT.example.org:443"),
    ],
)
def test_known_host_names_and_addresses_are_accepted(host: str) -> None:
    assert is_known_host(host, HttpOptions(hosts=("mt.example.org",)))


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example"),
        *("notlocalhost", "a.mt.example.org", "mt.example.org.evil.example", "2130706433"),
        *("evil.example:80@127.0.0.1", "127.0.0.1:80:evil.example", "127.0.0.1/", "", " ", "[]"),
        "evil.example\x00localhost",
    ],
)
def test_other_host_names_are_rejected(host: str) -> None:
    """Otherwise a page whose name points to 127.0.0.1 could use the server (DNS rebinding)."""
    options = HttpOptions(hosts=("mt.example.org",))
    assert not is_known_host(host, options)
    for method, path in (("GET", "/"), ("GET", "/api/runs"), ("POST", "/api/translate")):
        response = respond(method, path, options=options, headers={"Host": host})
        status, kind, message = error_of(response)
        assert (status, kind) == (421, "wrong-host")
        assert "--allow-host" in message


@given(st.from_regex(r"[a-z]{1,8}(\.[a-z0-9]{1,8}){1,3}", fullmatch=True))
def test_no_domain_name_is_accepted_by_default(name: str) -> None:
    assert is_known_host(name, HttpOptions()) == name.endswith(".localhost")
    assert is_known_host(name, HttpOptions(hosts=("*",)))


def test_a_second_host_header_is_checked() -> None:
    headers = [("Host", "localhost"), ("Host", "evil.example")]
    assert respond("GET", "/api/runs", headers=headers).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:9000"},
        {"Origin": "http://localhost"},
        {"Origin": "null"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/translate", "/detect", "/api/translate", "/api/caption"])
def test_posts_of_other_origins_are_rejected(path: str, headers: dict[str, str]) -> None:
    """Browsers send forms to other origins without asking the server."""
    status, kind, message = error_of(respond("POST", path, data=FORM, headers=headers))
    assert (status, kind) == (403, "wrong-origin")
    assert "--allow-origin" in message
    assert "None" not in message


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://localhost:8000"},
        {"Origin": "https://mt.example.org", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://mt.example.org", "X-Forwarded-Host": "mt.example.org"},
        {"Origin": "https://friend.example", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_posts_of_this_and_of_allowed_origins_are_accepted(headers: dict[str, str]) -> None:
    options = HttpOptions(origins=("https://friend.example",))
    response = respond("POST", "/translate", data=FORM, headers=headers, options=options)
    assert response.json()["kind"] != "wrong-origin"


def test_only_allowed_origins_can_read_responses() -> None:
    options = HttpOptions(origins=("https://friend.example",))
    for origin, allowed in (("https://friend.example", True), ("https://evil.example", False)):
        preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        for response in (
            respond("GET", "/health", headers={"Origin": origin}, options=options),
            respond("OPTIONS", "/api/translate", headers=preflight, options=options),
        ):
            assert ("access-control-allow-origin" in response.headers) == allowed
            assert "access-control-allow-credentials" not in response.headers
        default = respond("GET", "/health", headers={"Origin": origin})
        assert "access-control-allow-origin" not in default.headers


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "GZIP, gzip"])
def test_compressed_bodies_are_rejected_unread(encoding: str) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    assert len(bomb) < 20_000
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    for path in ("/translate", "/api/translate", "/api/caption"):
        status, kind, message = error_of(respond("POST", path, content=bomb, headers=headers))
        assert (status, kind) == (415, "wrong-type")
        assert "uncompressed" in message


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../api/errors.py", "/static/%2e%2e/api/errors.py", "/static/..%2fapi/errors.py"),
        *("/static/..%5capi%5cerrors.py", "/static//etc/passwd", "/static/%2fetc%2fpasswd"),
        *("/api/lab/..%2f..%2fetc%2fpasswd", "/api/trainings/..%2f..%2fetc", "/mt/../etc/passwd"),
        *("/static/....//api/errors.py", "/static/shared/../../api/errors.py", "/..%2f..%2fetc"),
    ],
)
def test_paths_outside_the_served_files_are_not_found(path: str) -> None:
    response = respond("GET", path, options=HttpOptions(root_path="/mt"))
    assert response.status_code == 404
    assert set(response.json()) == {"error", "kind", "problems"}


def test_messages_that_repeat_a_request_are_never_html() -> None:
    """A browser runs no script of a JSON response, and `nosniff` forbids guessing another type."""
    for script in payloads(12):
        text = script.replace("\0", "")
        requests: list[tuple[str, str, dict[str, Any]]] = [
            ("POST", "/api/translate", {"json": {"texts": ["a"], "run": text}}),
            ("POST", "/api/complete", {"json": {text: 1}}),
            ("POST", "/translate", {"data": {**FORM, "source": text}}),
            ("GET", "/api/trainings/x", {"params": {"after": text}}),
            ("GET", f"/{text.replace('?', '').replace('#', '').lstrip('/')}", {}),
        ]
        for method, path, request in requests:
            response = respond(method, path, **request)
            assert response.status_code >= 400
            assert response.headers["content-type"] == "application/json"
            assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    [
        "X-Large: " + "a" * 600_000,
        "\r\n".join(f"X-{number}: a" for number in range(2_000)),
        "Cookie: " + "a=b; " * 100_000,
    ],
)
def test_requests_with_huge_headers_are_rejected(server: ServerProcess, head: str) -> None:
    with server.connect() as connection:
        try:
            connection.sendall(
                f"GET /health HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode()
            )
            response = connection.recv(4096)
        except (ConnectionResetError, BrokenPipeError):
            response = b""  # the server closed the connection before it had read the request
    assert not response or response.startswith(b"HTTP/1.1 431")
    assert server.get("/health").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_deeply_nested_json_is_rejected(server: ServerProcess, depth: int) -> None:
    body = "[" * depth + "]" * depth
    for path in ("/translate", "/api/translate", "/api/explain"):
        response = server.client.post(
            server.url + path, content=body, headers={"Content-Type": "application/json"}
        )
        assert response.status_code in (400, 422), path


def test_invalid_options_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        HttpOptions.parse(
            "127.0.0.1",
            ["http://mt.example.org", "a b"],
            ["example.org", "https://example.org/page"],
            ["https://a.example; script-src *", "none\r\nX: y"],
            "/mt/../x y",
        )
    message = str(caught.value)
    for option, count in (("host", 2), ("origin", 2)):
        assert message.count(f"--allow-{option} ") == count
    assert message.count("--frame-ancestors ") == 2
    assert "--root-path /mt/../x y: must be a path such as /mt" in message


def test_options_are_normalised() -> None:
    options = HttpOptions.parse(
        "0.0.0.0",
        ["MT.example.org"],
        ["HTTPS://Example.org/"],
        ["self", "https://a.example"],
        "mt/",
    )
    assert "mt.example.org" in options.hosts
    assert options.origins == ("https://example.org",)
    assert options.frame_ancestors == ("'self'", "https://a.example")
    assert options.root_path == "/mt"
    assert HttpOptions.parse("::1", [], [], [], "/").root_path == ""


@pytest.mark.slow
def test_names_of_runs_never_run_as_script(visitor: Visitor) -> None:
    """The name of a run is the name of its folder. The `visitor` fixture fails if a script runs."""
    scripts = payloads(9)

    def inject(route: Route) -> None:
        response = route.fetch()
        content = response.json()
        for run, script in zip(content["runs"], scripts, strict=False):
            run["name"] = script
        route.fulfill(response=response, json=content)

    visitor.replace_answers(re.compile("/api/runs"), inject)
    page = visitor.load()
    expect(page.locator("main")).to_contain_text("window.seen.ran++")
    for view in ("translate", "complete", "label", "compare", "train"):
        visitor.open(f"#/{view}?{urlencode({'run': scripts[0], 'text': 'ab'})}")
        visitor.settle()
    visitor.check()
