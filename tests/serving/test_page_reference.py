"""The API reference at /docs: nested types, curl commands, and forms that send requests."""

import json
import shlex
import subprocess

import pytest
from playwright.sync_api import Locator, expect

from support.browsing import Visitor
from support.server_process import ServerProcess

pytestmark = pytest.mark.slow


def open_route(visitor: Visitor, name: str) -> Locator:
    page = visitor.page
    page.goto("about:blank")
    page.goto(f"{visitor.server.url}/docs#{name}")
    route = page.locator(f"#{name}")
    expect(route.get_by_role("button", name="Send")).to_be_visible()
    return route


def test_every_route_is_listed(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.page
    page.goto(f"{server.url}/docs")
    paths = server.get("/openapi.json").json()["paths"]
    count = sum(len(methods) for methods in paths.values())
    expect(page.locator(".route")).to_have_count(count)


def test_nested_types_are_expanded(visitor: Visitor) -> None:
    route = open_route(visitor, "post-api-translate")
    expect(route.get_by_text("Its translations, best first.")).to_have_count(0)
    route.get_by_text("Fields of TranslatedText").click()
    route.get_by_text("Fields of TranslatedSegment").click()
    expect(route.get_by_text("Its translations, best first.")).to_be_visible()
    assert not visitor.axe()


def test_form_sends_a_request_and_the_curl_command_is_the_same_request(
    visitor: Visitor, server: ServerProcess
) -> None:
    route = open_route(visitor, "post-api-translate")
    route.get_by_label("Body").fill('{"texts": ["it\'s abcd"],\n "run": "reverser"}')
    route.get_by_role("button", name="Send").click()
    expect(route.get_by_text("Status 200")).to_be_visible()
    shown = json.loads(route.get_by_label("Response").inner_text())
    assert shown == server.post_json("/api/translate", texts=["it's abcd"], run="reverser")
    command = shlex.split(route.get_by_label("curl command").inner_text().replace("\\\n", " "))
    assert command[:3] == ["curl", "-X", "POST"]
    result = subprocess.run([*command, "-s"], capture_output=True, check=True)
    assert json.loads(result.stdout) == shown


def test_form_shows_the_message_of_an_error(visitor: Visitor) -> None:
    route = open_route(visitor, "post-api-translate")
    route.get_by_label("Body").fill('{"texts": [5]}')
    route.get_by_role("button", name="Send").click()
    expect(route.get_by_text("Status 422")).to_be_visible()
    expect(route.get_by_label("Response")).to_contain_text("texts, item 1: must be a text")


def test_parameters_are_part_of_the_address(visitor: Visitor) -> None:
    route = open_route(visitor, "get-api-trainings-run-")
    route.get_by_label("run", exact=True).fill("reverser")
    route.get_by_label("after (optional)").fill("0")
    expect(route.get_by_label("curl command")).to_contain_text("/api/trainings/reverser?after=0'")
    route.get_by_role("button", name="Send").click()
    expect(route.get_by_text("Status 200")).to_be_visible()


def test_file_is_sent_as_a_form(visitor: Visitor) -> None:
    route = open_route(visitor, "post-translate_file")
    route.get_by_label("Fields").fill('{"source": "la", "target": "it"}')
    file = {"name": "letter.txt", "mimeType": "text/plain", "buffer": b"abcd"}
    route.get_by_label("File").set_input_files(file)  # type: ignore[arg-type]
    route.get_by_role("button", name="Send").click()
    expect(route.get_by_label("Response")).to_contain_text("translatedFileUrl")
    expect(route.get_by_label("curl command")).to_contain_text("-F file=@letter.txt")
