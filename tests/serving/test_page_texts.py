"""The web page on texts: copying, languages, long texts, links, and uncertain words."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

from support.browsing import Visitor
from support.server_process import ServerProcess

pytestmark = pytest.mark.slow

CLIPBOARD = """() => {
  window.copied = [];
  Object.defineProperty(navigator, "clipboard", {
    configurable: true,
    value: { writeText: (text) => (window.copied.push(text), Promise.resolve()) },
  });
}"""
MANY_VALUES = """import("/static/components/vector.js").then(
  (vectors) => vectors.largestMagnitude(Array.from({ length: 1000 }, () => Array(512).fill(-2))))"""
"""The keys of a source of 1,000 tokens and a width of 512: too many arguments for one function."""
SELECT_WORDS = """group => {
  getSelection().selectAllChildren(group);
  const text = getSelection().toString();
  getSelection().removeAllRanges();
  return text;
}"""


def body_of(request: Request) -> dict[str, Any]:
    """The JSON body of a request that the page has sent."""
    body: dict[str, Any] | None = request.post_data_json
    assert body is not None
    return body


def translation_text(page: Page) -> str:
    """The shown translation, when it is complete."""
    group = page.get_by_role("group", name="Translation")
    expect(group.locator(".word").first).to_be_visible()
    text: str = group.evaluate("group => group.textContent")
    return text


def test_translation_can_be_copied_and_selected(visitor: Visitor) -> None:
    page = visitor.open("#/translate?run=reverser&text=abcd+dcba")
    shown = translation_text(page)
    page.evaluate(CLIPBOARD)
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Copied", exact=True).first).to_be_visible()
    assert page.evaluate("copied") == [shown]
    word = page.locator(".translation-output .word").first
    box = word.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 1, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, middle, steps=4)
    page.mouse.up()
    assert page.evaluate("getSelection().toString()").strip() in shown
    assert page.evaluate("getSelection().toString()")
    expect(page.locator(".alternatives")).to_have_count(0)
    group = page.get_by_role("group", name="Translation")
    assert group.evaluate(SELECT_WORDS) == shown


def test_counter_shows_the_limit_and_the_excess(visitor: Visitor) -> None:
    page = visitor.open("#/translate?run=transformer")
    source, counter = page.get_by_label("Source text"), page.locator(".counter")
    source.fill("abcd")
    expect(counter).to_have_text("4 / 5,000")
    source.fill("a" * 5_001)
    expect(counter).to_have_text("5,001 characters: 1 more than the limit of 5,000")
    expect(page.get_by_role("alert")).to_contain_text("5,001 characters")
    assert source.input_value() == "a" * 5_001, "the page does not cut the text"
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_source_language_limits_the_target_languages(visitor: Visitor) -> None:
    page = visitor.open("#/translate?run=polyglot&text=big")
    source, target = page.get_by_label("Source language"), page.get_by_label("Target language")
    expect(target.locator("option")).to_have_text(["German", "French"])
    visitor.settle()
    with page.expect_request("**/api/translate") as request:
        source.select_option("de")
    body = body_of(request.value)
    assert (body["source"], body["target"]) == ("de", "fr")
    expect(target.locator("option")).to_have_text(["French"])
    assert "source=de" in page.url


def test_languages_can_be_swapped_if_a_run_has_both_directions(
    visitor: Visitor, server: ServerProcess
) -> None:
    page = visitor.page
    served = server.get("/api/runs").json()
    reverser = next(run for run in served["runs"] if run["name"] == "reverser")
    transformer = next(run for run in served["runs"] if run["name"] == "transformer")
    transformer["languages"] = [{"source": "it", "target": "la"}]
    assert reverser["languages"] == [{"source": "la", "target": "it"}]
    visitor.replace_answers("**/api/runs", lambda route: route.fulfill(json=served))
    visitor.load("#/translate?run=reverser&text=abcd")
    shown = translation_text(page)
    page.get_by_role("button", name="Swap the languages and the texts").click()
    expect(page.get_by_label("Source text")).to_have_value(shown)
    assert "run=transformer" in page.url
    page.unroute("**/api/runs")
    visitor.load("#/translate?run=reverser&text=abcd")
    expect(page.get_by_role("button", name="No run translates in the opposite")).to_be_disabled()


def test_long_text_is_translated_completely_in_parts(
    visitor: Visitor, server: ServerProcess
) -> None:
    """7,200 characters are more than the server accepts as one text, and 75 sentences as well."""
    text = "\n".join(["abcd" * 23 + "abc."] * 75)[:7_200]
    page = visitor.open("#/translate?run=reverser&beam=1")
    sizes = []

    def record(route: Route) -> None:
        sizes.append(body_of(route.request)["texts"])
        route.continue_()

    visitor.replace_answers("**/api/translate", record)
    page.get_by_label("Source text").fill(text)
    count = len(text.split("\n"))
    expect(page.locator(f"[data-sentence='{count - 1}']").first).to_be_attached()
    assert "".join(part for [part] in sizes) == text
    assert max(len(part) for [part] in sizes) <= 1_000
    lines = page.get_by_role("group", name="Translation").evaluate("group => group.textContent")
    assert len(lines.split("\n")) == count
    last = page.locator(f"[data-sentence='{count - 1}']").first
    expect(last).to_have_attribute("title", re.compile("aligned with"))
    last.hover()
    expect(page.locator(".highlights mark:not(.unknown)").first).to_be_attached()


@pytest.mark.parametrize("view", ["attention", "search", "inside", "compare"])
def test_analysis_views_use_one_sentence_of_a_text(visitor: Visitor, view: str) -> None:
    page = visitor.open(f"#/{view}?run=reverser&text=Abcd.+Dcba.+Bc.")
    visitor.settle()
    chooser = page.get_by_label("Sentence (3)")
    expect(chooser.locator("option")).to_have_text(["1. Abcd.", "2. Dcba.", "3. Bc."])
    with page.expect_request(
        re.compile("/api/(attention|search/tree|explain|translate)$")
    ) as request:
        chooser.select_option("2")
    body = body_of(request.value)
    assert (body.get("text") or body["texts"][0]) == "Dcba."
    visitor.settle()
    assert "sentence=2" in page.url


def test_decoder_step_of_a_long_source(visitor: Visitor) -> None:
    page = visitor.open("#/inside?run=reverser&text=" + "abcd" * 300)
    expect(page.locator(".attention-diagram")).to_be_visible()
    visitor.settle()
    expect(page.get_by_text("40 of 1201 source tokens")).to_be_visible()
    assert page.locator(".attention-diagram .score-circle").count() == 40
    expect(page.get_by_text("and 1101 more rows").first).to_be_attached()
    assert page.evaluate(MANY_VALUES) == 2


def test_links_to_the_analysis_views_carry_the_shown_state(
    visitor: Visitor, server: ServerProcess
) -> None:
    page = visitor.open("#/translate?run=reverser&text=Abcd.+Dcba.&beam=3")
    page.locator("[data-sentence='1']").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("Other word").fill("cc")
    page.get_by_role("button", name="Insert").click()
    expect(page.locator(".word.forced")).to_have_text(re.compile("^cc"))
    shown = page.locator(".sentence").nth(1).evaluate("span => span.textContent").strip()
    page.locator("main").get_by_role("link", name="Beam search").click()
    expect(page.locator(".forced-output")).to_contain_text("Every output starts with: c c")
    expect(page.locator(".outputs tbody tr").first.locator("td").last).to_have_text(
        re.compile(f"^{shown}")
    )
    assert {"beam=3", "text=Dcba."} <= set(re.split("[?&]", page.url))
    page.go_back()
    expect(page.locator(".word.forced")).to_have_text(re.compile("^cc"))
    for name, path in (("Attention", "attention"), ("Decoder step", "explain")):
        with page.expect_request(f"**/api/{path}") as request:
            page.locator("main").get_by_role("link", name=name).click()
        body = body_of(request.value)
        assert (body["text"], body["output"], body["beam"]) == ("Dcba.", shown, 3)
        page.go_back()
        expect(page.locator(".word.forced")).to_have_text(re.compile("^cc"))


def test_link_to_a_missing_run_says_so(visitor: Visitor) -> None:
    page = visitor.open("#/translate?run=missing&text=abcd")
    expect(page.get_by_role("alert")).to_contain_text("“missing”, which this server does not offer")
    visitor.open("#/train?training=missing")
    expect(page.get_by_role("alert")).to_contain_text("“missing”")
    visitor.open("#/translate?run=reverser&text=abcd")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_small_models_and_uncertain_words_are_marked(visitor: Visitor) -> None:
    page = visitor.open("#/translate?run=reverser&text=abcd+dcba")
    expect(page.locator(".training-note")).to_contain_text("small model")
    expect(page.locator(".training-note")).to_contain_text("Expect mistakes.")
    words = page.locator(".translation-output .word")
    expect(words.first).to_be_visible()
    for word in words.all():
        probability = word.evaluate("word => Number(word.style.getPropertyValue('--probability'))")
        is_marked = "uncertain" in str(word.get_attribute("class")).split()
        assert is_marked == (probability < 0.2)
