"""Sub-path, HEAD, compression, access log and frames."""

import logging
import re
from pathlib import Path

import httpx
import pytest

from seqloom.serving.http.access_log import log_request
from seqloom.serving.http.options import HttpOptions
from support.in_process_server import respond
from support.server_process import ServerProcess

STATIC = Path(__file__).parents[2] / "src" / "seqloom" / "serving" / "static"
UNDER_MT = HttpOptions(root_path="/mt")
ROOTED_ADDRESS = re.compile(r"""(?:href|src)="/|fetch\(["`]/|url\(["']?/|from "/|import\("/""")


@pytest.mark.parametrize("path", ["/", "/docs", "/health", "/static/main.js", "/openapi.json"])
def test_paths_with_and_without_the_sub_path_are_equal(path: str) -> None:
    plain = respond("GET", path, options=UNDER_MT)
    assert plain.status_code == 200
    assert respond("GET", f"/mt{path}", options=UNDER_MT).content == plain.content
    assert respond("GET", f"/mt{path}").status_code == 404
    assert respond("GET", f"/mtx{path}", options=UNDER_MT).status_code == 404


def test_a_sub_path_that_begins_like_a_route() -> None:
    options = HttpOptions(root_path="/api")
    for path in ("/api/runs", "/health"):
        assert respond("GET", f"/api{path}", options=options).status_code == 200


def test_the_sub_path_without_a_slash_is_redirected() -> None:
    response = respond("GET", "/mt", options=UNDER_MT)
    assert (response.status_code, response.headers["location"]) == (307, "/mt/")


def test_openapi_names_the_sub_path() -> None:
    assert respond("GET", "/openapi.json", options=UNDER_MT).json()["servers"] == [{"url": "/mt"}]
    assert "servers" not in respond("GET", "/openapi.json").json()


def test_all_addresses_in_the_page_are_relative() -> None:
    """Otherwise the page would not work under a sub-path."""
    components = STATIC.parents[1] / "viz" / "components"
    for path in [*STATIC.rglob("*"), *components.iterdir()]:
        if path.suffix in (".html", ".js", ".css", ".svg"):
            assert not ROOTED_ADDRESS.findall(path.read_text(encoding="utf-8")), path.name


@pytest.mark.parametrize("path", ["/", "/api/runs", "/health", "/static/main.js", "/nowhere"])
def test_head_has_the_headers_of_get_and_no_body(path: str) -> None:
    get = respond("GET", path, headers={"Accept-Encoding": "identity"})
    head = respond("HEAD", path, headers={"Accept-Encoding": "identity"})
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-length"] == get.headers["content-length"]
    assert head.headers["content-type"] == get.headers["content-type"]


def test_large_responses_are_compressed_on_request() -> None:
    compressed = respond("GET", "/openapi.json", headers={"Accept-Encoding": "gzip"})
    plain = respond("GET", "/openapi.json", headers={"Accept-Encoding": "identity"})
    assert compressed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert int(compressed.headers["content-length"]) < int(plain.headers["content-length"]) / 4
    assert compressed.json() == plain.json()
    assert "Accept-Encoding" in plain.headers["vary"]
    small = respond("GET", "/health", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


@pytest.mark.slow
def test_streams_are_not_compressed(server: ServerProcess) -> None:
    with server.client.stream(
        "POST",
        f"{server.url}/api/complete/stream",
        json={"prompts": ["ab"], "seed": 1},
        headers={"Accept-Encoding": "gzip"},
    ) as response:
        assert "content-encoding" not in response.headers
        chunks = list(response.iter_raw())
    assert b"event: start" in chunks[0]
    assert len(chunks) > 1


@pytest.mark.parametrize(
    ("ancestors", "directive"),
    [
        ((), "frame-ancestors 'none'"),
        (("'self'", "https://hub.example"), "frame-ancestors 'self' https://hub.example"),
    ],
)
def test_frame_ancestors_are_a_directive_of_the_policy(
    ancestors: tuple[str, ...], directive: str
) -> None:
    for path in ("/", "/nowhere"):
        response = respond("GET", path, options=HttpOptions(frame_ancestors=ancestors))
        policies = response.headers.get_list("content-security-policy")
        assert len(policies) == 1
        assert policies[0].endswith(directive)


def log_lines(caplog: pytest.LogCaptureFixture, *requests: tuple[str, str]) -> list[str]:
    with caplog.at_level(logging.INFO, "seqloom.serving.http.access_log"):
        for method, path in requests:
            respond(method, path, observe=log_request)
    return [record.getMessage() for record in caplog.records if "access_log" in record.name]


def test_the_access_log_has_one_line_per_request(caplog: pytest.LogCaptureFixture) -> None:
    lines = log_lines(caplog, ("HEAD", "/health"), ("GET", "/nowhere"), ("HEAD", "/nowhere"))
    assert re.fullmatch(r'127.0.0.1 "HEAD /health" 200 \d+\.\d ms', lines[0])
    assert re.fullmatch(r'127.0.0.1 "GET /nowhere" 404 \d+\.\d ms not-found', lines[1])
    assert re.fullmatch(r'127.0.0.1 "HEAD /nowhere" 404 \d+\.\d ms not-found', lines[2])


def test_the_access_log_contains_no_key_and_no_forged_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = log_lines(caplog, ("POST", "/translate?api_key=secret"), ("GET", "/%0aforged%22%1b[0m"))
    assert not [line for line in lines if "secret" in line]
    assert "/%0Aforged%22%1B%5B0m" in lines[1]


@pytest.mark.slow
def test_rejected_requests_have_all_headers(server: ServerProcess) -> None:
    response = httpx.get(f"{server.url}/api/runs", headers={"Host": "evil.example"})
    assert response.status_code == 421
    assert "default-src 'none'" in response.headers["content-security-policy"]
