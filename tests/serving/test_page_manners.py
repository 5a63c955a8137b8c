"""The page, tried: by people who use keys alone, by those who would break it, by small screens."""

import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from browsing import VIEWS, Visitor, visit
from calling_server import KEY, Server, start
from payloads import payloads

STATIC = Path(__file__).parents[2] / "src" / "seqloom" / "serving" / "static"
COUNT = 12 * int(os.environ.get("SEQLOOM_CAMPAIGN", "1"))
FULL = {
    "translate": "#/translate?run=reverser&text=abcd",
    "complete": "#/complete?text=ab&seed=3&length=12",
    "caption": "#/caption",
    "forecast": "#/forecast",
    "label": "#/label?text=hund",
    "attention": "#/attention?run=transformer&text=abcd",
    "search": "#/search?run=reverser&text=abcd",
    "inside": "#/inside?run=reverser&text=abcd",
    "compare": "#/compare?run=reverser&with=transformer&text=abcd",
    "train": "#/train?training=reverser",
    "lab": "#/lab?claim=scale",
}


def test_only_views_that_somebody_can_fill_are_offered(visitor: Visitor, browser: Browser) -> None:
    page = visitor.open()
    links = page.locator("nav a").evaluate_all("all => all.map((one) => one.dataset.view)")
    assert tuple(links) == VIEWS
    runs = json.loads(visitor.server.get("/api/runs").text)
    runs["runs"] = [one for one in runs["runs"] if one["kind"] == "forecast"]
    page.route("**/api/runs", lambda route: route.fulfill(json=runs))
    page.route("**/api/lab", lambda route: route.fulfill(json={"reports": []}))
    visitor.open()
    links = page.locator("nav a").evaluate_all("all => all.map((one) => one.dataset.view)")
    assert links == ["forecast", "inside", "train"]


@pytest.mark.parametrize("view", VIEWS)
def test_nobody_is_kept_out(visitor: Visitor, view: str) -> None:
    """axe-core finds nothing serious, in light and in dark."""
    page = visitor.open(FULL[view])
    visitor.settle()
    for colours in ("Light", "Dark"):
        page.get_by_role("button", name=colours).click()
        visitor.settle()
        assert not visitor.axe(), f"{view}, {colours}"
    assert page.locator("html").get_attribute("data-theme") == "dark"
    visitor.open(FULL[view])
    assert page.locator("html").get_attribute("data-theme") == "dark", "it is remembered"


def test_empty_views_and_choices_keep_nobody_out(visitor: Visitor) -> None:
    page = visitor.open("#/translate")
    assert not visitor.axe()
    page.get_by_label("Text").fill("abcd")
    page.locator(".sheet .word").first.click()
    page.wait_for_selector(".instead")
    assert not visitor.axe()
    visitor.open("#/inside?of=lecture")
    visitor.settle()
    assert not visitor.axe()


def test_keys_alone_are_enough(visitor: Visitor) -> None:
    page = visitor.open("#/translate?run=reverser&text=abcd+dcba")
    page.wait_for_selector(".sheet .word")
    page.keyboard.press("Tab")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator(".sheet .word").first.focus()
    expect(page.locator(".behind mark").first).to_be_attached()
    page.keyboard.press("Enter")
    page.wait_for_selector(".instead")
    assert page.evaluate("document.activeElement.closest('.options') !== null")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert page.locator(".instead").count() == 0
    assert page.evaluate("document.activeElement.className") == "word"


def test_results_are_told_to_those_who_listen(visitor: Visitor) -> None:
    page = visitor.open("#/label?text=hund")
    expect(page.locator("#live")).to_contain_text(re.compile(r"(de|en), \d+ %"))
    page.get_by_role("link", name="Search").click()
    assert page.title() == "Search · seqloom"
    assert page.evaluate("document.activeElement.tagName") == "H1"


def fields(page: Page) -> list[Any]:
    return page.locator("main textarea, main input[type=text]").all()


@pytest.mark.parametrize("view", [one for one in VIEWS if one not in ("caption", "train", "lab")])
def test_what_is_typed_is_never_run(visitor: Visitor, view: str) -> None:
    """In every field, and in the link; `visitor` sees whatever runs or is refused."""
    several = payloads(COUNT)
    page = visitor.open(FULL[view])
    visitor.settle()
    for typed in (" ".join(several), *several[:: max(1, COUNT // 4)]):
        for one in fields(page):
            one.fill(typed[:2000])
        page.wait_for_timeout(300)
        visitor.settle()
    for name in ("text", "run", "target", "begin", "with", "output", "rows", "claim", "head"):
        visitor.open(f"#/{view}?{urlencode({name: several[0]})}")
    visitor.settle()


def poisoned(content: Any, poison: str) -> Any:
    """An answer whose every word is a script, its numbers and names of things kept."""
    kept = {"name", "kind", "run", "fate", "state", "engine", "route", "version", "form"}
    match content:
        case dict():
            return {
                key: value if key in kept else poisoned(value, poison)
                for key, value in content.items()
            }
        case list():
            return [poisoned(one, poison) for one in content]
        case str():
            return poison
        case _:
            return content


@pytest.mark.parametrize("view", ["translate", "attention", "search", "inside", "compare", "lab"])
def test_what_models_say_is_never_run(visitor: Visitor, view: str) -> None:
    """Tokens, texts, formulas and reports may say anything."""
    several = iter(payloads(1000))

    def poison(route: Route) -> None:
        response = route.fetch()
        if response.headers["content-type"] != "application/json":
            route.fulfill(response=response)
            return
        route.fulfill(response=response, json=poisoned(response.json(), next(several)))

    visitor.page.route(re.compile("/api/(?!runs|trainings)"), poison)
    page = visitor.open(FULL[view])
    visitor.settle()
    expect(page.locator("main")).to_contain_text("window.seen.ran++")


@pytest.mark.parametrize("view", VIEWS)
def test_small_screens_need_no_scrolling_sideways(browser: Browser, server: Server, view: str,
                                                  reports: Path) -> None:  # fmt: skip
    context, visitor = visit(browser, server, viewport={"width": 360, "height": 740})
    page = visitor.open(FULL[view])
    visitor.settle()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    link = page.locator("nav [aria-current]")
    box = link.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= 360 - box["width"] / 2, "where one is can be seen"
    visitor.check()
    context.close()


def test_refusals_say_what_to_do(visitor: Visitor) -> None:
    page = visitor.open("#/attention?run=reverser")
    page.get_by_label("Text").evaluate("one => one.removeAttribute('maxlength')")
    page.get_by_label("Text").fill("a" * 5001)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("has 5,001 characters; at most 5,000 a text")
    page.get_by_label("Text").fill("abcd")
    expect(alert).to_have_count(0)
    visitor.open("#/lab?claim=nothing-of-the-kind")
    expect(page.get_by_role("alert")).to_contain_text("There is no report of 'nothing-of-the-kind'")
    visitor.open("#/no-such-view")
    expect(page.get_by_role("heading", level=1)).to_have_text("Translate")


def test_a_key_is_asked_for_and_a_service_that_has_gone_is_told(
    browser: Browser, runs: dict[str, Path], keys: Path
) -> None:
    server = start([runs["reverser"]], "--keys", str(keys))
    context, visitor = visit(browser, server)
    page = visitor.open("#/translate?text=abcd")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("A key is needed")
    page.get_by_label("Key").fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("This key is not known here")
    page.get_by_label("Key").fill(KEY)
    page.keyboard.press("Enter")
    expect(page.locator(".sheet .word").first).to_be_visible()
    assert server.stop() == 0
    page.get_by_label("Text").fill("dcba")
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    visitor.check()
    context.close()


def test_the_sources_hold_nothing_that_could_run_what_is_typed() -> None:
    paths = sorted(path for path in STATIC.rglob("*") if path.is_file())
    assert len(paths) > 30
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 300, f"{path.name} is too long"
        if path.suffix in (".js", ".html"):
            for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function",
                         ' style="', "onclick=", "DOMParser"):  # fmt: skip
                assert word not in text, f"{path.name}: {word}"
        elsewhere = [one for one in re.findall(r"https?://[^\s\"'`)]+", text) if "www.w3.org" not in one]
        assert not elsewhere, f"{path.name}: {elsewhere}"
