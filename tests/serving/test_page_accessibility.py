"""The web page works with assistive technology, with the keyboard alone, and on small screens."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from support.browsing import VIEW_LINKS, VIEWS, Visitor, visit
from support.server_process import ServerProcess

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
    assert page.evaluate("document.activeElement.classList.contains('word')")


def test_alternatives_keep_the_focus_until_they_close(visitor: Visitor) -> None:
    page = visitor.open("#/translate?run=reverser&text=abcd+dcba")
    word = page.locator(".translation-output .word").first
    word.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog")
    expect(panel).to_be_visible()
    for key in ("Tab", "Shift+Tab"):
        for _ in range(6):
            page.keyboard.press(key)
            assert page.evaluate("document.activeElement.closest('[role=dialog]') !== null")
    page.keyboard.press("Escape")
    expect(word).to_be_focused()


def test_alternatives_are_inside_a_small_window(visitor: Visitor) -> None:
    page = visitor.open("#/translate?run=reverser&text=abcd+dcba")
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": 390, "height": 480})
    word = page.locator(".translation-output .word").first
    # Below the word there is room for the first alternative only.
    word.evaluate("word => { word.scrollIntoView({ block: 'end' }); scrollBy(0, 110); }")
    word.click()
    box = page.get_by_role("dialog").bounding_box()
    page.keyboard.press("Escape")
    page.set_viewport_size(size)
    assert box is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 480


def test_focus_stays_on_the_selected_step(visitor: Visitor) -> None:
    page = visitor.open("#/inside?run=reverser&text=abcd")
    steps = page.locator(".steps button")
    steps.first.focus()
    page.keyboard.press("ArrowRight")
    expect(steps.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(steps.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(steps.nth(1)).to_be_focused()
    assert page.locator(".steps button[tabindex='0']").count() == 1, "one tab stop"


LUMINANCE = """colour => {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((part) => linear(part / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}"""


def test_edges_of_the_search_tree_have_enough_contrast(visitor: Visitor) -> None:
    """At least 3:1, as WCAG 2.2 requires of graphics (1.4.11)."""
    page = visitor.open("#/search?run=reverser&text=abcd&beam=3")
    for theme in ("Light", "Dark"):
        page.get_by_role("button", name=theme).click()
        visitor.settle()
        expect(page.locator(".tree .dropped path").first).to_be_attached()
        card = page.locator(".tree-scroll").evaluate(
            "card => getComputedStyle(card).backgroundColor"
        )
        strokes = page.locator(".tree path").evaluate_all(
            "paths => [...new Set(paths.map((path) => getComputedStyle(path).stroke))]"
        )
        assert len(strokes) >= 3
        for stroke in strokes:
            low, high = sorted(page.evaluate(LUMINANCE, colour) for colour in (card, stroke))
            assert (high + 0.05) / (low + 0.05) >= 3, (theme, stroke)
    page.get_by_role("button", name="System").click()


def test_bars_stay_visible_in_forced_colours(browser: Browser, server: ServerProcess) -> None:
    context, visitor = visit(browser, server, forced_colors="active")
    page = visitor.load(VIEW_LINKS["translate"])
    word = page.locator(".translation-output .word").first
    expect(word).to_be_visible()
    bar = word.evaluate("word => getComputedStyle(word, '::after').backgroundImage")
    assert "gradient" in bar
    visitor.check()
    context.close()


def test_focused_word_is_highlighted_once_its_alignment_arrives(visitor: Visitor) -> None:
    """The page requests alignments after it shows the words, so focus can come first."""
    page, held = visitor.page, []
    visitor.replace_answers("**/api/score", lambda route: held.append(route))
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
    expect(page).to_have_title("Beam search · seqloom")
    expect(page.locator("h1")).to_be_focused()


def test_small_screens_do_not_scroll_sideways(
    browser: Browser, server: ServerProcess, reports: Path
) -> None:
    context, visitor = visit(browser, server, viewport={"width": 320, "height": 640})
    for view, link in VIEW_LINKS.items():
        page = visitor.open(link)
        visitor.settle()
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, view
        box = page.locator("nav [aria-current]").bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= 320 - box["width"] / 2, "the current view is visible"
    visitor.check()
    context.close()
