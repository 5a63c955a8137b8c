"""Whatever cannot be answered is refused with its status and a sentence that helps."""

import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from calling_server import Server, called, refusal, start
from seqloom.core.errors import ConfigError, DataError, NotFoundError, StorageError
from seqloom.serving.keys import Keys
from seqloom.serving.limits import changed_limits
from seqloom.serving.server import free_address
from small_runs import picture

ASK: dict[str, Any] = {"run": "reverser", "texts": ["ab"]}


@pytest.mark.parametrize(
    ("path", "content", "status", "words"),
    [
        ("/api/translate", {**ASK, "texts": []}, 422, "texts: list should have at least 1 item"),
        ("/api/translate", {**ASK, "texts": [""]}, 422, "texts: there is nothing in it"),
        ("/api/translate", {**ASK, "texts": "ab"}, 422, "texts: input should be a valid list"),
        ("/api/translate", {**ASK, "texts": [5]}, 422, "texts[0]: input should be a valid string"),
        ("/api/translate", {"run": "reverser"}, 422, "texts: is missing"),
        ("/api/translate", {**ASK, "text": "ab"}, 422, "text: there is no such field"),
        ("/api/translate", {**ASK, "beam": 10**9}, 422, "beam: 1000000000 is too large; at most 8"),
        ("/api/translate", {**ASK, "beam": 0}, 422, "beam: input should be greater than"),
        ("/api/translate", {**ASK, "beam": "5"}, 422, "beam: input should be a valid integer"),
        ("/api/translate", {**ASK, "n_best": 7}, 422, "n_best: 7 is too large; at most 6"),
        ("/api/translate", {**ASK, "beam": 2, "n_best": 3}, 422, "3 outputs need a beam of 3"),
        ("/api/translate", {**ASK, "prefix": "d"}, 422, "prefix: needs one text alone"),
        ("/api/translate", {**ASK, "texts": ["a" * 5001]}, 413, "has 5,001 characters"),
        ("/api/translate", {**ASK, "texts": ["a"] * 65}, 413, "65 at once; at most 64"),
        ("/api/translate", {**ASK, "texts": ["\ud800"]}, 422, "half of a surrogate pair"),
        ("/api/translate", {**ASK, "run": "nobody"}, 404, "there is no run 'nobody' here"),
        ("/api/translate", {**ASK, "run": "speaker"}, 422, "completes texts; ask it at"),
        ("/api/translate", {"texts": ["a"]}, 422, "run: say which one is meant"),
        ("/api/translate", {"texts": ["a"], "source": "xx"}, 400, "nothing here translates from xx"),
        ("/api/translate", {**ASK, "target": "de"}, 422, "it knows: la-it"),
        (
            "/api/translate",
            {"run": "transformer", "texts": ["a"], "target": "de"},
            422,
            "start the service with --languages de:de",
        ),
        ("/api/translate", {"run": "polyglot", "texts": ["dog"]}, 422, "target: say what to"),
        (
            "/api/translate",
            {"run": "transformer", "texts": ["abcd" * 10], "split": False},
            422,
            "the model reads at most 24 tokens a line",
        ),
        ("/api/complete", {"samples": 7}, 422, "samples: 7 is too large"),
        ("/api/complete", {"max_length": 257}, 422, "max_length: 257 is too large"),
        ("/api/complete", {"temperature": 0, "samples": 2}, 422, "the likeliest text is one text"),
        ("/api/complete", {"prompts": ["abab"], "max_length": 3}, 422, "has 4 tokens already"),
        ("/api/complete", {"run": "captioner"}, 422, "captions images; ask it at /api/caption"),
        ("/api/label", {"texts": [" "]}, 422, "texts: there is nothing"),
        ("/api/score", {"sources": ["a"], "targets": ["a", "b"], "run": "reverser"}, 422, "paired"),
        ("/api/forecast", {"windows": [{"observed": [[1.0, 2.0]]}]}, 422, "1 rows; the run takes 6"),
        (
            "/api/forecast",
            {"windows": [{"observed": [[1.0]] * 6, "context": [[1.0]] * 3}]},
            422,
            "windows[0].observed[0]: 1 numbers; there must be 2: level, push",
        ),
        (
            "/api/forecast",
            {"windows": [{"observed": [[1.0, 1e300]] * 6, "context": [[1.0]] * 3}]},
            422,
            "numbers must be finite",
        ),
        ("/api/forecast", {"windows": [{"observed": [[1.0, 2.0]] * 6}]}, 422, "0 rows; the run"),
        ("/api/attention", {"run": "speaker", "text": "ab"}, 422, "is a language model"),
        ("/api/attention", {"run": "labeller", "text": "ab"}, 422, "does not look back"),
        ("/api/attention", {"run": "captioner", "text": "/etc/passwd"}, 422, "captions images"),
        ("/api/search", {"run": "reverser", "text": ""}, 422, "the text is blank"),
        ("/api/search", {"run": "reverser", "text": "a", "beam": 99}, 422, "beam: 99 is too large"),
        ("/api/alternatives", {"run": "reverser", "text": "a", "tokens": [10**9]}, 422, "cannot"),
        ("/api/continue", {"run": "reverser", "text": "a", "begin": [2, 4]}, 422, "begin[0]"),
        ("/api/continue", {"run": "reverser", "text": "a", "begin": [4] * 257}, 422, "257 is too large"),
        ("/api/instead", {"run": "reverser", "text": "a", "step": 99, "piece": "b"}, 422, "no step"),
        ("/api/instead", {"run": "reverser", "text": "a", "step": 1, "piece": "€"}, 422, "not know"),
        ("/api/explain", {"run": "reverser", "text": "a", "step": 99}, 422, "there is no step 99"),
        ("/api/explain", {"run": "speaker", "text": "a", "step": 1, "head": 1}, 422, "no attention"),
    ],
)  # fmt: skip
def test_bad_requests(
    server: Server, path: str, content: dict[str, Any], status: int, words: str
) -> None:
    response = server.client.post(
        server.url + path,
        content=json.dumps(content),
        headers={"Content-Type": "application/json"},
    )
    found, _, sentence = refusal(response)
    assert found == status, sentence
    assert words in sentence


@pytest.mark.parametrize("body", [b"", b"{", b'{"texts": [}', b"\xff\xfe", b"[" * 100_000])
@pytest.mark.parametrize("path", ["/api/translate", "/translate"])
def test_what_is_no_json_is_said_to_be_none(server: Server, path: str, body: bytes) -> None:
    response = server.client.post(
        server.url + path, content=body, headers={"Content-Type": "application/json"}
    )
    status, kind, sentence = refusal(response)
    assert status in (400, 422) if body in (b"",) else status == 400, sentence
    assert kind in ("invalid-json", "invalid")


def test_json_that_is_no_object(server: Server) -> None:
    for path in ("/api/translate", "/translate"):
        response = server.client.post(server.url + path, json=[1, 2])
        assert refusal(response)[0] in (400, 422)


def test_other_types_of_bodies(server: Server) -> None:
    form = server.client.post(f"{server.url}/api/translate", data={"texts": "ab"})
    assert refusal(form)[:2] == (415, "wrong-type")
    assert "Content-Type: application/json" in form.json()["error"]
    plain = server.client.post(f"{server.url}/translate", content="q=a")
    assert refusal(plain)[:2] == (415, "wrong-type")
    asked = server.client.post(f"{server.url}/api/caption", json={"image": "no"})
    assert refusal(asked)[:2] == (415, "wrong-type")


def test_paths_and_methods_that_there_are_not(server: Server) -> None:
    assert refusal(server.get("/api/nothing"))[:2] == (404, "not-found")
    wrong = server.get("/api/translate")
    assert refusal(wrong) == (405, "wrong-method", "/api/translate does not answer GET; use POST")
    assert wrong.headers["allow"] == "POST"
    assert refusal(server.client.delete(f"{server.url}/languages"))[0] == 405


def caption(server: Server, content: bytes) -> httpx.Response:
    return server.client.post(
        f"{server.url}/api/caption", content=content, headers={"Content-Type": "image/png"}
    )


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header promises more pixels than it has bytes."""

    def chunk(name: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 1000)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def test_images_that_cannot_be_read(server: Server) -> None:
    whole = picture("red", (64, 64), "JPEG")
    for content in (b"", b"no image", whole[:100], picture("red")[:40], b"\x89PNG\r\n\x1a\n"):
        status, kind, sentence = refusal(caption(server, content))
        assert (status, kind) == (422, "unusable"), sentence
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    assert refusal(caption(server, svg))[0] == 422


@pytest.mark.parametrize("size", [(100_000, 100_000), (5_000, 4_000), (2**31 - 1, 2**31 - 1)])
def test_image_bombs_are_not_unpacked(server: Server, size: tuple[int, int]) -> None:
    status, _, sentence = refusal(caption(server, bomb(*size)))
    assert status in (413, 422), sentence


def test_bodies_that_are_too_large(server: Server) -> None:
    for path, size in (("/api/translate", 300_000), ("/translate", 300_000)):
        response = server.post(path, texts=["a" * size])
        assert refusal(response)[:2] == (413, "too-large")

    def parts() -> Any:
        for _ in range(40):
            yield b"a" * 10_000

    try:  # a body of unknown length is counted as it comes
        response = server.client.post(f"{server.url}/api/translate", content=parts())
        assert response.status_code == 413
    except httpx.WriteError:
        pass  # refused and closed before all of it was sent


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("beem=3", "beem: there is no such limit; did you mean 'beam'?"),
        ("xyz=3", "xyz: there is no such limit; there are body_bytes"),
        ("beam=0", "beam: input should be greater than or equal to 1"),
        ("beam=many", "beam: input should be a valid integer"),
        ("beam", "'beam' must look like name=value"),
    ],
)
def test_limits_that_are_none(setting: str, words: str) -> None:
    assert changed_limits(["beam=12", "characters=9"]).beam == 12
    with pytest.raises(ConfigError, match=re.escape(words)):
        changed_limits([setting])


def test_keys_are_kept_as_digests_only(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    for content, words in (("open sesame\n", "is no SHA-256"), ("\n", "holds no key")):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=f"{words}.*sha256sum") as caught:
            Keys.read(path)
        assert "sesame" not in str(caught.value)
    with pytest.raises(NotFoundError, match="the keys cannot be read"):
        Keys.read(tmp_path / "nowhere")


def test_an_address_that_cannot_be() -> None:
    with pytest.raises(StorageError, match=r"256\.0\.0\.1:0: cannot be opened"):
        free_address("256.0.0.1", 0)


def test_an_address_that_is_taken_is_not_shared(server: Server, runs: dict[str, Path]) -> None:
    """The command says so, and ends by its status."""
    answer = called(runs["reverser"], "--port", server.port)
    assert answer.returncode == 74
    assert f"127.0.0.1:{server.port}: cannot be opened (Address already in use)" in answer.stderr


def test_runs_of_the_same_name_are_told_apart(runs: dict[str, Path]) -> None:
    server = start([runs["reverser"], runs["reverser"]])
    try:
        names = [run["name"] for run in server.get("/api/runs").json()["runs"]]
        assert names == ["reverser", "reverser-2"]
    finally:
        assert server.stop() == 0
