"""The web page shows errors of the server and asks for an API key."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from support.browsing import Visitor, visit
from support.server_process import KEY, start_server

pytestmark = pytest.mark.slow


def test_server_errors_are_shown_until_the_next_result(visitor: Visitor) -> None:
    page = visitor.open("#/attention?run=reverser")
    source = page.get_by_label("Source text")
    source.fill("a" * 5001)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("5,001 characters")
    source.fill("abcd")
    expect(alert).to_have_count(0)
    visitor.open("#/lab?claim=nothing-of-the-kind")
    expect(page.get_by_role("alert")).to_contain_text("'nothing-of-the-kind'")
    visitor.open("#/no-such-view")
    expect(page.get_by_role("heading", level=1)).to_have_text("Translate")


def test_api_key_prompt_and_unreachable_server(
    browser: Browser, runs: dict[str, Path], keys: Path
) -> None:
    server = start_server([runs["reverser"]], "--keys", str(keys))
    context, visitor = visit(browser, server)
    held: list[Route] = []
    # The first request for the lab has no key and is answered after the right key was entered.
    visitor.replace_answers("**/api/lab", lambda route: held.append(route), times=1)
    page = visitor.load("#/translate?text=abcd")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("API key required")
    page.get_by_label("Key", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("The server does not accept this key")
    page.get_by_label("Key", exact=True).fill(KEY)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    held[0].continue_()
    expect(page.locator(".translation-output .word").first).to_be_visible()
    assert server.stop() == 0
    page.get_by_label("Source text").fill("dcba")
    expect(page.get_by_role("alert")).to_contain_text("The server does not respond")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(page.locator(".translation-output .word").first).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("The previous result is still shown below")
    visitor.check()
    context.close()


def test_failed_alternatives_keep_the_translation_and_can_be_requested_again(
    visitor: Visitor,
) -> None:
    page = visitor.open("#/translate?run=reverser&text=abcd")
    word = page.locator(".translation-output .word").first
    expect(word).to_be_visible()
    error = {"error": "the model failed", "kind": "internal"}
    visitor.replace_answers(
        "**/api/alternatives", lambda route: route.fulfill(status=500, json=error)
    )
    word.click()
    expect(page.get_by_role("alert")).to_contain_text("The model failed.")
    expect(word).to_be_visible()
    page.unroute("**/api/alternatives")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("dialog")).to_contain_text("Alternatives to")
    page.keyboard.press("Escape")


def test_training_view_reconnects(visitor: Visitor) -> None:
    page = visitor.page
    visitor.replace_answers("**/api/trainings/reverser?*", lambda route: route.abort())
    visitor.open("#/train?training=reverser")
    expect(page.get_by_role("alert")).to_contain_text("The server does not respond")
    page.unroute("**/api/trainings/reverser?*")
    expect(page.locator(".figure-chart").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
