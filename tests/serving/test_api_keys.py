"""API keys are stored as SHA-256 digests. Only the exact key is accepted."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError, NotFoundError
from seqloom.serving.server.api_keys import ApiKeys, bearer_token
from seqloom.serving.server.app import ROUTERS
from support.in_process_server import respond

KEY = "3fa85f64c0ffee005717b3fc2c963f66"
OTHER_KEY = "Correct Horse Battery Staple ü"
WITHOUT_KEY = {
    *("/api/runs", "/health", "/ready", "/", "/docs", "/static/{name:path}"),
    *("/languages", "/frontend/settings", "/spec", "/download_file/{token}"),
}
"""GET routes that need no key. The address of a translated file contains a secret."""


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


KEYS = ApiKeys((digest_of(KEY), digest_of(OTHER_KEY)))


def near_misses(key: str) -> list[str]:
    """Strings that resemble the key, or that an attacker could have read or guessed."""
    digest = digest_of(key)
    prefixes = [key[:length] for length in range(len(key))]
    suffixes = [key[start:] for start in range(1, len(key) + 1)]
    changed = [key[:i] + ("0" if key[i] != "0" else "1") + key[i + 1 :] for i in range(len(key))]
    return [
        *(*prefixes, *suffixes, *changed),
        *(key.upper() + "!", key.swapcase(), key.title(), key[::-1], key + key, key + "0"),
        *(f" {key}", f"{key} ", f"{key}\n", f"\t{key}", f"{key}\0", f"{key}\u200b", f'"{key}"'),
        *(digest, digest[:8], digest[:32], digest.upper(), digest_of(digest), f"{key}:{digest}"),
        *("", " ", "\t", "None", "null", "*", "Bearer", f"Bearer {key}"),
    ]


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_only_the_exact_key_is_accepted(key: str) -> None:
    assert KEYS.contains(key)
    for wrong in near_misses(key):
        assert not KEYS.contains(wrong), repr(wrong)


@given(st.text())
def test_no_other_text_is_a_key(text: str) -> None:
    assert KEYS.contains(text) == (text in (KEY, OTHER_KEY))


@pytest.mark.parametrize("position", range(64))
def test_every_digit_of_the_digest_is_compared(position: int) -> None:
    """A comparison of a part of the digest would accept other keys."""
    digest = digest_of(KEY)
    changed = "0" if digest[position] != "0" else "1"
    stored = digest[:position] + changed + digest[position + 1 :]
    assert not ApiKeys((stored,)).contains(KEY)
    assert ApiKeys((stored, digest)).contains(KEY)


def test_incomplete_digests_accept_nothing() -> None:
    digest = digest_of(KEY)
    for stored in ("", digest[:8], digest[:63], digest[8:], f"{digest}0", digest.upper()):
        assert not ApiKeys((stored,)).contains(KEY)


def test_comparison_takes_the_same_time_for_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key is compared with all whole digests, by a function of constant time."""
    compared: list[tuple[str, str]] = []
    compare = hmac.compare_digest

    def record(first: str, second: str) -> bool:
        compared.append((first, second))
        return compare(first, second)

    monkeypatch.setattr(hmac, "compare_digest", record)
    for key in (KEY, OTHER_KEY, "wrong", ""):
        compared.clear()
        KEYS.contains(key)
        assert compared == [(digest_of(key), digest) for digest in KEYS.digests]


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        *((header, None) for header in ("abc", "Bearer", "Bearer ", "Basic abc", "Bearerabc", "")),
        (None, None),
    ],
)
def test_the_key_follows_the_word_bearer(header: str | None, key: str | None) -> None:
    assert bearer_token(header) == key


def all_routes() -> list[tuple[str, str]]:
    return [
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
        if (method, route.path) != ("GET", route.path) or route.path not in WITHOUT_KEY
    ]


@pytest.mark.parametrize(("method", "path"), all_routes())
def test_every_other_route_needs_the_exact_key(method: str, path: str) -> None:
    content: dict[str, Any] = {"json": {"q": "a", "source": "la", "target": "it"}}
    if path == "/api/caption":
        content = {"content": b"x", "headers": {"Content-Type": "image/png"}}
    if path == "/translate_file":
        content = {"files": {"file": ("a.txt", b"a")}, "data": {"source": "la", "target": "it"}}
    request = {} if method == "GET" else content
    url = path.replace("{run}", "demo").replace("{claim}", "scale")
    assert respond(method, url, keys=KEYS, **request).status_code in (401, 403)
    digest = digest_of(KEY)
    for wrong in (KEY[:8], KEY[:-1], KEY + "0", KEY.upper(), digest, digest[:8], "x"):
        headers = {**request.get("headers", {}), "Authorization": f"Bearer {wrong}"}
        response = respond(method, url, keys=KEYS, **{**request, "headers": headers})
        body = response.json()
        kind = body["error"]["code"] if path.startswith("/v1/") else body["kind"]
        assert (response.status_code, kind) == (403, "wrong-key")
    headers = {**request.get("headers", {}), "Authorization": f"Bearer {KEY}"}
    response = respond(method, url, keys=KEYS, **{**request, "headers": headers})
    assert response.status_code not in (401, 403) or path == "/suggest"


@pytest.mark.parametrize("place", ["json", "data", "params"])
def test_libretranslate_routes_check_the_exact_field(place: str) -> None:
    fields = {"q": "a", "source": "la", "target": "it"}
    for key, accepted in ((KEY, True), *((wrong, False) for wrong in near_misses(KEY)[-24:])):
        fields_with_key = {**fields, "api_key": key}
        request: dict[str, Any] = {place: fields_with_key}
        if place == "params":
            request = {"params": {"api_key": key}, "json": fields}
        kind = respond("POST", "/translate", keys=KEYS, **request).json()["kind"]
        assert (kind not in ("no-key", "wrong-key")) == accepted, repr(key)


def test_only_files_with_digests_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    for content, message in (
        ("open sesame\n", "not a SHA-256 digest"),
        (f"{digest_of('open sesame')[:8]}\n", "not a SHA-256 digest"),
        (f"{digest_of('')}  -\n", "digest of an empty key"),
        ("\n", "contains no API key"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=f"{message}.*sha256sum") as caught:
            ApiKeys.read(path)
        assert "sesame" not in str(caught.value)
    with pytest.raises(NotFoundError, match="cannot read the API keys"):
        ApiKeys.read(tmp_path / "nowhere")
