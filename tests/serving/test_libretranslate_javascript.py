"""Requests as the web page and the API documentation of LibreTranslate send them, from a browser.

The page uses XMLHttpRequest and FormData, and always sends `api_key`, which is empty without a key.
The documentation uses fetch with JSON.
"""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from seqloom.serving.server.batcher import Batcher
from seqloom.serving.server.catalogue import load_catalogue
from support.browsing import Visitor
from support.in_process_server import respond
from support.server_process import ServerProcess

pytestmark = pytest.mark.slow

GET = """path => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest();
  request.open("GET", location.protocol + "//" + location.host + path, true);
  request.onload = () => resolve({ status: request.status, body: JSON.parse(request.response) });
  request.onerror = () => reject(new Error("no response"));
  request.send();
})"""
POST_FORM = """([path, fields, file]) => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest(), data = new FormData();
  if (file) data.append("file", new File([file.content], file.name));
  for (const [name, value] of fields) data.append(name, value);
  data.append("api_key", localStorage.getItem("api_key") || "");
  request.open("POST", location.protocol + "//" + location.host + path, true);
  request.onload = () => resolve({ status: request.status, body: JSON.parse(request.response) });
  request.onerror = () => reject(new Error("no response"));
  request.send(data);
})"""
POST_JSON = """async ([path, fields]) => {
  const response = await fetch(location.origin + path, {
    method: "POST",
    body: JSON.stringify(fields),
    headers: { "Content-Type": "application/json" },
  });
  return { status: response.status, body: await response.json() };
}"""
DOWNLOAD = "async url => await (await fetch(url)).text()"


@pytest.fixture
def page(visitor: Visitor) -> Page:
    return visitor.open("#/lab")


def post_form(
    page: Page, path: str, fields: dict[str, str], file: dict[str, str] | None = None
) -> Any:
    return page.evaluate(POST_FORM, [path, list(fields.items()), file])


def test_settings_and_languages_are_those_that_the_page_reads(page: Page) -> None:
    settings = page.evaluate(GET, "/frontend/settings")["body"]
    languages = page.evaluate(GET, "/languages")["body"]
    codes = [language["code"] for language in languages]
    assert settings["language"]["source"]["code"] in codes
    assert settings["language"]["target"]["code"] in codes
    assert settings["charLimit"] > 0
    assert settings["suggestions"] is False
    assert ".txt" in settings["supportedFilesFormat"]
    assert settings["filesTranslation"] is True
    assert settings["frontendTimeout"] >= 0
    for language in languages:
        assert language["name"]
        assert set(language["targets"]) <= set(codes)


def test_form_data_and_json_give_the_same_translation(page: Page, server: ServerProcess) -> None:
    fields = {"q": "abcd", "source": "la", "target": "it", "format": "text"}
    expected = server.post_json("/api/translate", texts=["abcd"], run="reverser")
    form = post_form(page, "/translate", fields)
    assert form["status"] == 200
    assert form["body"]["translatedText"] == expected["translations"][0]["text"]
    documented = page.evaluate(POST_JSON, ["/translate", {**fields, "api_key": ""}])
    assert documented == form
    alternatives = {**fields, "alternatives": 3, "api_key": ""}
    found = page.evaluate(POST_JSON, ["/translate", alternatives])["body"]
    assert found["translatedText"] == form["body"]["translatedText"]
    assert 1 <= len(found["alternatives"]) <= 3


def test_html_is_translated_between_its_tags(page: Page) -> None:
    fields = {"source": "la", "target": "it"}
    plain = post_form(page, "/translate", {**fields, "q": "abcd", "format": "text"})["body"]
    html = post_form(page, "/translate", {**fields, "q": "<p>abcd</p>", "format": "html"})["body"]
    assert html["translatedText"] == f"<p>{plain['translatedText']}</p>"


def test_errors_have_the_field_that_the_page_shows(page: Page) -> None:
    fields = {"q": "abcd", "source": "la", "target": "xx", "format": "text"}
    response = post_form(page, "/translate", fields)
    assert response["status"] == 400
    assert "xx is not supported" in response["body"]["error"]
    fields = {"q": "abcd", "s": "dcba", "source": "la", "target": "it"}
    suggestion = post_form(page, "/suggest", fields)
    assert suggestion["status"] == 403
    assert "success" not in suggestion["body"]
    assert "suggestions" in suggestion["body"]["error"]


def test_translated_file_is_downloaded_from_its_address(page: Page) -> None:
    fields = {"source": "la", "target": "it"}
    expected = post_form(page, "/translate", {**fields, "q": "abcd", "format": "text"})["body"]
    file = {"name": "letter.txt", "content": "abcd"}
    response = post_form(page, "/translate_file", fields, file)
    assert response["status"] == 200
    text = page.evaluate(DOWNLOAD, response["body"]["translatedFileUrl"])
    assert text == expected["translatedText"]


def test_detected_language_has_a_code_and_a_confidence(page: Page, runs: dict[str, Path]) -> None:
    """The shared server detects no languages, so another application answers these requests."""
    catalogue = load_catalogue([runs["polyglot"], runs["labeller"]], None, [], Batcher)

    def answer(route: Route) -> None:
        request = route.request
        response = respond(
            request.method,
            "/" + request.url.rpartition("/")[2],
            catalogue=catalogue,
            content=request.post_data_buffer,
            headers={"Content-Type": request.headers["content-type"]},
        )
        route.fulfill(status=response.status_code, json=response.json())

    for path in ("detect", "translate"):
        page.route(f"**/{path}", answer)
    detected = page.evaluate(POST_JSON, ["/detect", {"q": "hund mann katze", "api_key": ""}])
    [first, *_] = detected["body"]
    assert first["language"] == "de"
    assert 0 < first["confidence"] <= 100
    form = post_form(page, "/detect", {"q": "hund mann katze"})
    assert form == detected
    fields = {"q": "hund mann katze", "source": "auto", "target": "fr", "format": "text"}
    translated = post_form(page, "/translate", fields)
    assert translated["body"]["detectedLanguage"] == first
    page.unroute_all(behavior="wait")
    catalogue.close()
