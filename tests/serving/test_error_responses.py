"""Invalid requests get an error response with a status, a kind and a helpful message."""

import json
import struct
import zlib
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from seqloom.serving.api.forecasts import _to_window
from seqloom.serving.api.schemas.predictions import ForecastWindow
from seqloom.serving.errors import ApiError
from support.server_process import ServerProcess, error_of
from support.small_runs import image_bytes

pytestmark = pytest.mark.slow
TRANSLATE: dict[str, Any] = {"run": "reverser", "texts": ["ab"]}


@pytest.mark.parametrize(
    ("path", "content", "status", "words"),
    [
        ("/api/translate", {**TRANSLATE, "texts": []}, 422, "texts: must have at least 1 item"),
        ("/api/translate", {**TRANSLATE, "texts": [""]}, 422, "texts: contains only white space"),
        ("/api/translate", {**TRANSLATE, "texts": "ab"}, 422, "texts: must be a list"),
        ("/api/translate", {**TRANSLATE, "texts": [5]}, 422, "texts, item 1: must be a text"),
        ("/api/translate", {"run": "reverser"}, 422, "texts: this field is required"),
        ("/api/translate", {**TRANSLATE, "text": "ab"}, 422, "text: there is no such field"),
        ("/api/translate", {**TRANSLATE, "beam": 10**9}, 422, "beam: 1000000000 is too large; the limit is 8"),
        ("/api/translate", {**TRANSLATE, "beam": 0}, 422, "beam: must be at least 1"),
        ("/api/translate", {**TRANSLATE, "beam": "5"}, 422, "beam: must be a whole number"),
        ("/api/translate", {**TRANSLATE, "n_best": 7}, 422, "n_best: 7 is too large; the limit is 6"),
        ("/api/translate", {**TRANSLATE, "beam": 2, "n_best": 3}, 422, "3 outputs need a beam of 3"),
        ("/api/translate", {**TRANSLATE, "prefix": "d", "split": True}, 422, "prefix: needs a single text"),
        ("/api/translate", {**TRANSLATE, "texts": ["a" * 5001]}, 413, "has 5,001 characters"),
        ("/api/translate", {**TRANSLATE, "texts": ["a"] * 65}, 413, "has 65 items; the limit is 64"),
        ("/api/translate", {**TRANSLATE, "texts": ["\ud800"]}, 422, "half of a surrogate pair"),
        ("/api/translate", {**TRANSLATE, "run": "missing"}, 404, "there is no run 'missing'"),
        ("/api/translate", {**TRANSLATE, "run": "speaker"}, 422, "completes texts; use /api/complete"),
        ("/api/translate", {"texts": ["a"]}, 422, "run: several runs support this request"),
        ("/api/translate", {"texts": ["a"], "source": "xx"}, 400, "no run translates from xx"),
        ("/api/translate", {**TRANSLATE, "target": "de"}, 422, "its language pairs are la-it"),
        (
            "/api/translate",
            {"run": "transformer", "texts": ["a"], "target": "de"},
            422,
            "start the server with --languages de:de",
        ),
        ("/api/translate", {"run": "polyglot", "texts": ["dog"]}, 422, "target: choose the target language"),
        (
            "/api/translate",
            {"run": "transformer", "texts": ["abcd" * 10], "split": False},
            422,
            "at most 24 tokens",
        ),
        ("/api/complete", {"samples": 7}, 422, "samples: 7 is too large"),
        ("/api/complete", {"max_length": 257}, 422, "max_length: 257 is too large"),
        (
            "/api/complete",
            {"temperature": 0, "samples": 2},
            422,
            "samples: with temperature 0, all outputs are equal; use samples = 1 or raise temperature",
        ),
        ("/api/complete", {"prompts": ["abab"], "max_length": 3}, 422, "already has 4 tokens"),
        ("/api/complete", {"run": "captioner"}, 422, "captions images; use /api/caption"),
        ("/api/label", {"texts": [" "]}, 422, "texts: contains only white space"),
        ("/api/score", {"sources": ["a"], "targets": ["a", "b"], "run": "reverser"}, 422, "one source per target"),
        ("/api/forecast", {"windows": [{"observed": [[1.0, 2.0]]}]}, 422, "has 1 rows; the run expects 6"),
        (
            "/api/forecast",
            {"windows": [{"observed": [[1.0]] * 6, "context": [[1.0]] * 3}]},
            422,
            "windows, item 1, observed, row 1: has 1 numbers; the run expects 2: level, push",
        ),
        (
            "/api/forecast",
            {"windows": [{"observed": [[1.0, 1e300]] * 6, "context": [[1.0]] * 3}]},
            422,
            "numbers must be finite",
        ),
        ("/api/forecast", {"windows": [{"observed": [[1.0, 2.0]] * 6}]}, 422, "has 0 rows; the run"),
        ("/api/attention", {"run": "speaker", "text": "ab"}, 422, "language model"),
        ("/api/attention", {"run": "labeller", "text": "ab"}, 422, "labeller"),
        ("/api/attention", {"run": "captioner", "text": "/etc/passwd"}, 422, "captions images"),
        ("/api/search", {"run": "reverser", "text": ""}, 422, "blank"),
        ("/api/search", {"run": "reverser", "text": "a", "beam": 99}, 422, "beam: 99 is too large"),
        ("/api/alternatives", {"run": "reverser", "text": "a", "tokens": [10**9]}, 422, "tokens, item 1: 1000000000 is not"),
        ("/api/continue", {"run": "reverser", "text": "a", "begin": [2, 4]}, 422, "begin, item 1"),
        ("/api/continue", {"run": "reverser", "text": "a", "begin": [4] * 257}, 422, "257 is too large"),
        ("/api/instead", {"run": "reverser", "text": "a", "step": 99, "piece": "b"}, 422, "99"),
        ("/api/instead", {"run": "reverser", "text": "a", "step": 1, "piece": "€"}, 422, "€"),
        ("/api/explain", {"run": "reverser", "text": "a", "step": 99}, 422, "99"),
        ("/api/explain", {"run": "speaker", "text": "a", "step": 1, "head": 1}, 422, "attention"),
    ],
)  # fmt: skip
def test_invalid_requests_get_a_status_and_a_message(
    server: ServerProcess, path: str, content: dict[str, Any], status: int, words: str
) -> None:
    response = server.client.post(
        server.url + path,
        content=json.dumps(content),
        headers={"Content-Type": "application/json"},
    )
    actual_status, _, message = error_of(response)
    assert actual_status == status, message
    assert words in message


def test_context_for_a_run_without_context_columns_is_an_error() -> None:
    config = SimpleNamespace(observe=1, predict=2)
    forecaster: Any = SimpleNamespace(columns=(("x",), ()), task=SimpleNamespace(config=config))
    accepted: list[list[list[float]] | None] = [None, [], [[], []]]
    for empty in accepted:
        _to_window(forecaster, "windows[0]", ForecastWindow(observed=[[1.0]], context=empty))
    rejected: list[list[list[float]]] = [[[]], [[1.0]], [[1.0], [2.0]]]
    for context in rejected:
        window = ForecastWindow(observed=[[1.0]], context=context)
        with pytest.raises(
            ApiError, match=r"context: the run has no context columns; omit context$"
        ):
            _to_window(forecaster, "windows[0]", window)


@pytest.mark.parametrize("body", [b"", b"{", b'{"texts": [}', b"\xff\xfe", b"[" * 100_000])
@pytest.mark.parametrize("path", ["/api/translate", "/translate"])
def test_invalid_json_gets_400(server: ServerProcess, path: str, body: bytes) -> None:
    response = server.client.post(
        server.url + path, content=body, headers={"Content-Type": "application/json"}
    )
    status, kind, message = error_of(response)
    assert status == 400 or (status == 422 and not body), message
    assert kind in ("invalid-json", "invalid")


def test_json_that_is_not_an_object_is_rejected(server: ServerProcess) -> None:
    for path in ("/api/translate", "/translate"):
        response = server.client.post(server.url + path, json=[1, 2])
        assert error_of(response)[0] in (400, 422)


def test_other_content_types_get_415(server: ServerProcess) -> None:
    form = server.client.post(f"{server.url}/api/translate", data={"texts": "ab"})
    assert error_of(form)[:2] == (415, "wrong-type")
    assert "Content-Type: application/json" in form.json()["error"]
    plain = server.client.post(f"{server.url}/translate", content="q=a")
    assert error_of(plain)[:2] == (415, "wrong-type")
    not_an_image = server.client.post(f"{server.url}/api/caption", json={"image": "no"})
    assert error_of(not_an_image)[:2] == (415, "wrong-type")


def test_unknown_paths_get_404_and_unsupported_methods_405(server: ServerProcess) -> None:
    assert error_of(server.get("/api/nothing"))[:2] == (404, "not-found")
    wrong = server.get("/api/translate")
    message = "/api/translate does not support GET; use POST"
    assert error_of(wrong) == (405, "wrong-method", message)
    assert wrong.headers["allow"] == "POST"
    assert error_of(server.client.delete(f"{server.url}/languages"))[0] == 405


def post_image(server: ServerProcess, content: bytes) -> httpx.Response:
    return server.client.post(
        f"{server.url}/api/caption", content=content, headers={"Content-Type": "image/png"}
    )


def png_bomb(width: int, height: int) -> bytes:
    """A small PNG file whose header declares a large image."""

    def chunk(name: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 1000)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def test_unreadable_images_get_422(server: ServerProcess) -> None:
    jpeg = image_bytes("red", (64, 64), "JPEG")
    for content in (b"", b"no image", jpeg[:100], image_bytes("red")[:40], b"\x89PNG\r\n\x1a\n"):
        status, kind, message = error_of(post_image(server, content))
        assert (status, kind) == (422, "unusable"), message
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    assert error_of(post_image(server, svg))[0] == 422


@pytest.mark.parametrize("size", [(100_000, 100_000), (5_000, 4_000), (2**31 - 1, 2**31 - 1)])
def test_image_bombs_are_rejected_by_their_header(
    server: ServerProcess, size: tuple[int, int]
) -> None:
    status, _, message = error_of(post_image(server, png_bomb(*size)))
    assert status in (413, 422), message


def test_bodies_that_are_too_large_get_413(server: ServerProcess) -> None:
    for path, size in (("/api/translate", 300_000), ("/translate", 300_000)):
        response = server.post(path, texts=["a" * size])
        assert error_of(response)[:2] == (413, "too-large")

    def chunks() -> Any:
        for _ in range(40):
            yield b"a" * 10_000

    try:  # without Content-Length, the server counts the bytes that arrive
        response = server.client.post(f"{server.url}/api/translate", content=chunks())
        assert response.status_code == 413
    except httpx.WriteError:
        pass  # the server responded and closed the connection before the end of the body
