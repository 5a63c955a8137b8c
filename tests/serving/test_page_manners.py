"""The page, tried: by people who use keys alone, by those who would break it, by small screens."""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, Route, expect

from browsing import VIEWS, Visitor, visit
from calling_server import KEY, Server, start
from payloads import payloads

STATIC = Path(__file__).parents[2] / "src" / "seqloom" / "serving" / "static"
COUNT = {"1": 20}.get(os.environ.get("SEQLOOM_CAMPAIGN", "1"), 120)
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


def test_only_views_that_somebody_can_fill_are_offered(
    visitor: Visitor, browser: Browser, server: Server
) -> None:
    names = "all => all.map((one) => one.dataset.view)"
    page = visitor.open("#/label")
    assert tuple(page.locator("nav a").evaluate_all(names)) == VIEWS
    context, lonely = visit(browser, server)
    served = server.get("/api/runs").json()
    served["runs"] = [one for one in served["runs"] if one["kind"] == "forecast"]
    lonely.page.route("**/api/runs", lambda route: route.fulfill(json=served))
    lonely.page.route("**/api/lab", lambda route: route.fulfill(json={"reports": []}))
    page = lonely.come()
    assert page.locator("nav a").evaluate_all(names) == ["forecast", "inside", "train"]
    lonely.check()
    context.close()


def test_nobody_is_kept_out(visitor: Visitor) -> None:
    """axe-core finds nothing serious in any view, in light and in dark."""
    for view, link in FULL.items():
        page = visitor.open(link)
        visitor.settle()
        for colours, rules in (("Light", ()), ("Dark", ("color-contrast",))):
            page.get_by_role("button", name=colours).click()
            visitor.settle()
            assert not visitor.axe(*rules), f"{view}, {colours}"
    page.goto(f"{visitor.server.url}/docs")
    expect(page.get_by_role("heading", name="POST/api/translate", exact=True)).to_be_visible()
    assert not visitor.axe(), "the routes"
    visitor.come(FULL["translate"])
    assert page.locator("html").get_attribute("data-theme") == "dark", "it is remembered"
    page.get_by_role("button", name="As the system").click()


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
    page = visitor.come("#/translate?run=reverser&text=abcd+dcba")
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


def test_a_word_lights_up_its_source_as_soon_as_that_is_known(visitor: Visitor) -> None:
    """Where words come from is asked for after they are shown: whoever is quicker misses nothing."""
    page, held = visitor.page, []
    page.route("**/api/score", lambda route: held.append(route))
    visitor.come("#/translate?run=reverser&text=abcd+dcba")
    page.locator(".sheet .word").first.focus()
    while not held:
        page.wait_for_timeout(10)
    assert page.locator(".behind mark").count() == 0
    held.pop().continue_()
    expect(page.locator(".behind mark").first).to_be_attached()
    page.unroute("**/api/score")


def test_results_are_told_to_those_who_listen(visitor: Visitor) -> None:
    page = visitor.open("#/label?text=hund")
    expect(page.locator("#live")).to_contain_text(re.compile(r"(de|en), \d+ %"))
    page.get_by_role("link", name="Search").click()
    assert page.title() == "Search · seqloom"
    assert page.evaluate("document.activeElement.tagName") == "H1"


def fields(page: Page) -> list[Any]:
    return page.locator("main textarea, main input[type=text]").all()


def test_what_is_typed_is_never_run(visitor: Visitor) -> None:
    """In every field, and in the link; `visitor` sees whatever runs or is refused."""
    several = payloads(COUNT)
    everything = " ".join(several)[:2000]
    for link in FULL.values():
        page = visitor.open(link)
        visitor.settle()
        for typed in (everything, *several[::20]):
            for one in fields(page):
                one.fill(typed)
            page.wait_for_timeout(200)
            visitor.settle()
    for view in FULL:
        names = ("text", "run", "target", "begin", "with", "output", "rows", "claim", "head")
        visitor.open(f"#/{view}?{urlencode(dict.fromkeys(names, several[0]))}")
        visitor.settle()
    for one in several:
        visitor.open(f"#/translate?{urlencode({'text': one})}")
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


def test_what_models_say_is_never_run(visitor: Visitor) -> None:
    """Tokens, texts, formulas and reports may say anything."""
    several = iter(payloads(1000))

    def poison(route: Route) -> None:
        response = route.fetch()
        if response.headers["content-type"] != "application/json":
            route.fulfill(response=response)
            return
        route.fulfill(response=response, json=poisoned(response.json(), next(several)))

    visitor.page.route(re.compile("/api/(?!runs|trainings)"), poison)
    for view in ("translate", "attention", "search", "inside", "compare", "label", "lab"):
        page = visitor.open(FULL[view])
        expect(page.locator("main")).to_contain_text(re.compile("seen.ran|elsewhere.test", re.I))
        visitor.check()


def test_small_screens_need_no_scrolling_sideways(
    browser: Browser, server: Server, reports: Path
) -> None:
    context, visitor = visit(browser, server, viewport={"width": 360, "height": 740})
    for view, link in FULL.items():
        page = visitor.open(link)
        visitor.settle()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
        box = page.locator("nav [aria-current]").bounding_box()
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
    page = visitor.come("#/translate?text=abcd")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("A key is needed")
    page.get_by_label("Key", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("This key is not known here")
    page.get_by_label("Key", exact=True).fill(KEY)
    page.keyboard.press("Enter")
    expect(page.locator(".sheet .word").first).to_be_visible()
    assert server.stop() == 0
    page.get_by_label("Text").fill("dcba")
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    visitor.check()
    context.close()


def test_all_modules_are_asked_for_at_once() -> None:
    """Not one after the other, as they are found in each other."""
    index = (STATIC / "index.html").read_text(encoding="utf-8")
    ahead = re.findall('rel="modulepreload" href="/static/([^"]+)"', index)
    modules = [path for folder in ("shared", "views") for path in STATIC.glob(f"{folder}/*.js")]
    assert ahead == sorted(path.relative_to(STATIC).as_posix() for path in modules)


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
        elsewhere = [
            one for one in re.findall(r"https?://[^\s\"'`)]+", text) if "www.w3.org" not in one
        ]
        assert not elsewhere, f"{path.name}: {elsewhere}"
