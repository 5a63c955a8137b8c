"""The beam search view of the web page: scores, playback, decoding from a node, and export."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from seqloom.text.vocabulary import END
from support.browsing import Visitor, visit
from support.server_process import ServerProcess

pytestmark = pytest.mark.slow

LINK = "#/search?run=reverser&text=abcd&beam=3"


def format_score(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def test_whole_tree_is_visible_with_the_scores_of_its_nodes(
    visitor: Visitor, server: ServerProcess
) -> None:
    page = visitor.open(LINK)
    expect(page.locator(".tree.decided")).to_be_visible()
    fits = "card => card.scrollWidth <= card.clientWidth && card.scrollHeight <= card.clientHeight"
    assert page.locator(".tree-scroll").evaluate(fits)
    tree = server.post_json("/api/search/tree", run="reverser", text="abcd", beam=3)["tree"]
    for node in (node for step in tree["spots"] for node in step):
        scores = f"Σ {format_score(node['total'])}  score {format_score(node['score'])}"
        assert page.locator(".tree .small").filter(has_text=scores).count() > 0


def test_playback_does_not_show_the_winner_before_the_last_step(visitor: Visitor) -> None:
    page = visitor.open(f"{LINK}&step=1")
    expect(page.locator(".step-label")).to_contain_text("step 1")
    winner = page.locator(".tree .wins path").first
    other = page.locator(".tree .kept:not(.wins) path").first
    stroke = "path => getComputedStyle(path).stroke"
    assert winner.evaluate(stroke) == other.evaluate(stroke)
    expect(page.locator(".tree .rank").first).to_be_hidden()
    expect(page.locator(".outputs")).to_be_hidden()
    page.get_by_label("Step", exact=True).press("End")
    expect(page.locator(".outputs")).to_be_visible()
    assert winner.evaluate(stroke) != other.evaluate(stroke)


def test_search_continues_from_a_selected_node(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(LINK)
    tree = server.post_json("/api/search/tree", run="reverser", text="abcd", beam=3)["tree"]
    node = next(node for node in tree["spots"][1] if node["fate"] == "dropped")
    begin = node["tokens"]
    expected = server.post_json(
        "/api/search/tree", run="reverser", text="abcd", beam=3, begin=begin
    )
    assert all(output["tokens"][: len(begin)] == begin for output in expected["outputs"])
    name = re.compile(f"^{re.escape(node['label'])}, probability {re.escape(node['p'])}, not in")
    page.get_by_role("button", name=name).first.press("Enter")
    expect(page.locator(".forced-output")).to_be_visible()
    texts = page.locator(".outputs tbody tr td:nth-child(4)")
    expect(texts.first).to_have_text(re.compile(f"^{expected['outputs'][0]['text']}"))
    assert f"begin={'.'.join(map(str, begin))}" in page.url
    assert page.evaluate("document.activeElement.classList.contains('tree-scroll')")
    page.get_by_role("button", name="Search from the start").click()
    expect(page.locator(".forced-output")).to_have_count(0)
    assert "begin" not in page.url


def test_search_begin_rejects_end(server: ServerProcess) -> None:
    status, _, message = server.post_error(
        "/api/search/tree", run="reverser", text="abcd", begin=[5, END]
    )
    assert status == 422
    assert "begin, item 2" in message


def test_tree_can_be_downloaded_with_its_colours(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.open(LINK)
    expect(page.locator(".tree.decided")).to_be_visible()
    for image_format in ("SVG", "PNG"):
        with page.expect_download() as download:
            page.get_by_role("button", name=image_format).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.suffix == f".{image_format.lower()}"
        if image_format == "SVG":
            assert re.search(r'<path[^>]* stroke="rgb', path.read_text(encoding="utf-8"))


def test_tree_is_legible_on_a_phone(browser: Browser, server: ServerProcess) -> None:
    context, visitor = visit(browser, server, viewport={"width": 390, "height": 760})
    page = visitor.load(LINK)
    expect(page.locator(".tree.decided")).to_be_visible()
    box = page.locator(".tree .token").first.bounding_box()
    assert box is not None
    assert box["height"] >= 11, "pixels"
    visitor.check()
    context.close()
