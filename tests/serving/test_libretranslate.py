"""Clients of LibreTranslate, as they are."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from libretranslatepy import LibreTranslateAPI

import seqloom
from calling_server import KEY, Server, start
from seqloom.runs.engine.translator import CTranslate2Engine
from seqloom.serving import libretranslate
from seqloom.serving.batcher import Batcher
from seqloom.serving.gate import Gate
from seqloom.serving.keys import Keys
from seqloom.serving.limits import Limits
from seqloom.serving.schema import TranslateRequest
from seqloom.serving.served import load_catalogue
from seqloom.serving.service import Service
from seqloom.serving.translating import translate
from tiny_runs import TRANSFORMER, recipe


def error_of(caught: pytest.ExceptionInfo[HTTPError]) -> tuple[int, str]:
    with caught.value as error:
        return error.code, json.loads(error.read())["error"]


def test_the_client_from_the_package_index_is_understood(server: Server) -> None:
    client = LibreTranslateAPI(server.url)
    own = server.ask("/api/translate", texts=["dog runs"], source="en", target="fr")
    assert client.translate("dog runs", "en", "fr") == own["translations"][0]["text"]
    known = {one["code"]: one for one in client.languages()}
    assert known["en"] == {"code": "en", "name": "English", "targets": ["de", "fr"]}
    assert known["fr"]["targets"] == []
    assert known["la"]["name"] == "Latin"


def test_the_client_gets_errors_that_help(server: Server) -> None:
    client = LibreTranslateAPI(server.url)
    with pytest.raises(HTTPError) as caught:
        client.translate("dog", "en", "xx")
    assert error_of(caught) == (400, "target: xx is not supported; there are: de, en, fr, it, la")
    with pytest.raises(HTTPError) as caught:
        client.translate("dog", "fr", "de")
    code, sentence = error_of(caught)
    assert code == 400
    assert "nothing here translates from fr to de" in sentence
    with pytest.raises(HTTPError) as caught:
        client.translate("", "en", "de")
    assert error_of(caught) == (400, "q: there is nothing to translate; give some text")


@pytest.mark.parametrize("form", [False, True])
def test_alternatives_and_lists(server: Server, form: bool) -> None:
    asked: dict[str, Any] = {"q": "abcd", "source": "la", "target": "it", "alternatives": 2}
    sent: dict[str, Any] = {"data": asked} if form else {"json": asked}
    found = server.client.post(f"{server.url}/translate", **sent).json()
    assert isinstance(found["translatedText"], str)
    assert 1 <= len(found["alternatives"]) <= 2
    assert found["translatedText"] not in found["alternatives"]
    listed = server.ask("/translate", q=["abcd", "dc"], source="la", target="it")
    assert listed["translatedText"][0] == found["translatedText"]
    assert len(listed["translatedText"]) == 2
    assert "alternatives" not in listed


def test_letters_of_a_form_may_be_escaped_or_not(server: Server) -> None:
    """As `curl -d` sends them, and as the standard wants them."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    def answer(body: bytes) -> tuple[int, Any]:
        found = server.client.post(f"{server.url}/translate", content=body, headers=form)
        return found.status_code, found.json()

    plain = server.ask("/translate", q="gefällt", source="la", target="it")
    assert answer("q=gefällt&source=la&target=it".encode()) == (200, plain)
    assert answer(b"q=gef%C3%A4llt&source=la&target=it") == (200, plain)
    for wrong in (b"q=gef\xe4llt&source=la&target=it", b"q=gef%E4llt&source=la&target=it"):
        status, told = answer(wrong)
        assert status == 400
        assert "the form is not valid UTF-8" in told["error"]


def test_the_source_may_be_left_to_the_service(server: Server) -> None:
    """A run that labels texts with their language could be asked, but this one knows no Latin."""
    for path in ("/translate", "/detect"):
        status, _, sentence = server.refusal(path, q="hund", source="auto", target="fr")
        assert status == 400
        assert "cannot tell languages apart" in sentence
        assert "de, en, la" in sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"q": "a", "source": "la"}, "target: is missing"),
        ({"source": "la", "target": "it"}, "q: is missing"),
        ({"q": 5, "source": "la", "target": "it"}, "q: "),
        ({"q": "a", "source": "la", "target": "it", "format": "html"}, "format: 'html' is not"),
        ({"q": "a", "source": "la", "target": "it", "alternatives": 9}, "alternatives: at most 5"),
        ({"q": [" "], "source": "la", "target": "it"}, "q: there is nothing"),
        ({"q": "\ud800", "source": "la", "target": "it"}, "surrogate"),
    ],
)
def test_what_is_wrong_is_said(server: Server, content: dict[str, Any], words: str) -> None:
    body = json.dumps(content)
    response = server.client.post(
        f"{server.url}/translate", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 400
    assert words in response.json()["error"]


def test_a_page_of_libretranslate_finds_its_settings(server: Server) -> None:
    found = server.get("/frontend/settings").json()
    assert found["charLimit"] == 5000
    assert found["keyRequired"] is False
    assert found["language"]["source"] == {"code": "la", "name": "Latin"}


def test_keys_are_asked_for_and_compared(runs: dict[str, Path], keys: Path) -> None:
    server = start([runs["polyglot"], runs["labeller"]], "--keys", str(keys))
    try:
        with pytest.raises(HTTPError) as caught:
            LibreTranslateAPI(server.url).translate("dog", "en", "de")
        assert error_of(caught)[0] == 403
        with pytest.raises(HTTPError) as caught:
            LibreTranslateAPI(server.url, "open barley").translate("dog", "en", "de")
        assert error_of(caught)[0] == 403
        client = LibreTranslateAPI(server.url, KEY)
        assert isinstance(client.translate("dog", "en", "de"), str)
        assert {one["language"] for one in client.detect("hund mann")} == {"de", "en"}
        found = server.client.post(
            f"{server.url}/translate",
            json={"q": "hund mann katze", "source": "auto", "target": "fr", "api_key": KEY},
        ).json()
        assert found["detectedLanguage"]["language"] == "de"
        assert found["detectedLanguage"]["confidence"] > 50

        asked = {"texts": ["dog"], "target": "de"}
        response = server.post("/api/translate", **asked)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        for key, status in (("open barley", 403), (KEY, 200)):
            headers = {"Authorization": f"Bearer {key}"}
            response = server.client.post(
                f"{server.url}/api/translate", json=asked, headers=headers
            )
            assert response.status_code == status
        assert server.get("/api/runs").status_code == 200
        assert server.get("/frontend/settings").json()["keyRequired"] is True
    finally:
        assert server.stop() == 0


def test_probabilities_that_the_answer_does_not_hold_are_not_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the engine would have to go over every output once more for them."""
    greedy = "decoding={kind='greedy'}"
    seqloom.train(recipe(*TRANSFORMER, "training.steps=4", greedy), tmp_path / "run")
    catalogue = load_catalogue([tmp_path / "run"], None, ["run=la:it"], Batcher)
    service = Service(catalogue, Limits(), Gate(Limits()), Keys())
    question = libretranslate.Question(q="abc", source="la", target="it")
    own = TranslateRequest(texts=["abc"])
    expected = asyncio.run(translate(service, own)).translations[0].text

    def refuse(*arguments: object) -> None:
        raise AssertionError("scored")

    monkeypatch.setattr(CTranslate2Engine, "score", refuse)
    assert asyncio.run(libretranslate._translated(service, ["abc"], "la", question)) == [[expected]]
    with pytest.raises(AssertionError, match="scored"):
        asyncio.run(translate(service, own))
    catalogue.runs[0].batcher.close()
