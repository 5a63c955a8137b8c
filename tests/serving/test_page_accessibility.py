"""The web page works with assistive technology, with the keyboard alone, and on small screens."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browsing import VIEW_LINKS, VIEWS, Visitor, visit
from server_process import ServerProcess

pytestmark = pytest.mark.slow


def test_navigation_lists_only_available_views(
    visitor: Visitor, browser: Browser, server: ServerProcess
) -> None:
    view_names = "links => links.map((link) => link.dataset.view)"
    page = visitor.open("#/label")
    assert tuple(page.locator("nav a").evaluate_all(view_names)) == VIEWS
    context, limited = visit(browser, server)
    served = server.get("/api/runs").json()
    served["runs"] = [run for run in served["runs"] if run["kind"] == "forecast"]
    limited.page.route("**/api/runs", lambda route: route.fulfill(json=served))
    limited.page.route("**/api/lab", lambda route: route.fulfill(json={"reports": []}))
    page = limited.load()
    assert page.locator("nav a").evaluate_all(view_names) == ["forecast", "inside", "train"]
    limited.check()
    context.close()


def test_axe_finds_no_serious_problems_in_light_and_dark(visitor: Visitor) -> None:
    for view, link in VIEW_LINKS.items():
        page = visitor.open(link)
        visitor.settle()
        for theme, rules in (("Light", ()), ("Dark", ("color-contrast",))):
            page.get_by_role("button", name=theme).click()
            visitor.settle()
            assert not visitor.axe(*rules), f"{view}, {theme}"
    page.goto(f"{visitor.server.url}/docs")
    expect(page.get_by_role("heading", name="POST/api/translate", exact=True)).to_be_visible()
    assert not visitor.axe(), "API reference"
    visitor.load(VIEW_LINKS["translate"])
    assert page.locator("html").get_attribute("data-theme") == "dark", "the theme is stored"
    page.get_by_role("button", name="System").click()


def test_axe_finds_no_serious_problems_in_empty_views_and_panels(visitor: Visitor) -> None:
    page = visitor.open("#/translate")
    assert not visitor.axe()
    page.get_by_label("Source text").fill("abcd")
    page.locator(".translation-output .word").first.click()
    page.wait_for_selector(".alternatives")
    assert not visitor.axe()
    visitor.open("#/inside?of=lecture")
    visitor.settle()
    assert not visitor.axe()


def test_keyboard_alone_is_sufficient(visitor: Visitor) -> None:
    page = visitor.load("#/translate?run=reverser&text=abcd+dcba")
    page.wait_for_selector(".translation-output .word")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator(".translation-output .word").first.focus()
    expect(page.locator(".highlights mark:not(.unknown)").first).to_be_attached()
    page.keyboard.press("Enter")
    page.wait_for_selector(".alternatives")
    assert page.evaluate("document.activeElement.closest('.options') !== null")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert page.locator(".alternatives").count() == 0
    assert page.evaluate("document.activeElement.className") == "word"


def test_focused_word_is_highlighted_once_its_alignment_arrives(visitor: Visitor) -> None:
    """The page requests alignments after it shows the words, so focus can come first."""
    page, held = visitor.page, []
    page.route("**/api/score", lambda route: held.append(route))
    visitor.load("#/translate?run=reverser&text=abcd+dcba")
    page.locator(".translation-output .word").first.focus()
    while not held:
        page.wait_for_timeout(10)
    assert page.locator(".highlights mark:not(.unknown)").count() == 0
    held.pop().continue_()
    expect(page.locator(".highlights mark:not(.unknown)").first).to_be_attached()
    page.unroute("**/api/score")


def test_results_are_announced_to_screen_readers(visitor: Visitor) -> None:
    page = visitor.open("#/label?text=hund")
    expect(page.locator("#live")).to_contain_text(re.compile(r"(de|en), \d+ %"))
    page.get_by_role("link", name="Beam search").click()
    assert page.title() == "Beam search · seqloom"
    assert page.evaluate("document.activeElement.tagName") == "H1"


def test_small_screens_do_not_scroll_sideways(
    browser: Browser, server: ServerProcess, reports: Path
) -> None:
    context, visitor = visit(browser, server, viewport={"width": 360, "height": 740})
    for view, link in VIEW_LINKS.items():
        page = visitor.open(link)
        visitor.settle()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
        box = page.locator("nav [aria-current]").bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= 360 - box["width"] / 2, "the current view is visible"
    visitor.check()
    context.close()
