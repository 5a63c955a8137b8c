"""The page, used: every view shows what the service says."""

import re
from pathlib import Path
from typing import get_args

from playwright.sync_api import expect

from browsing import Visitor
from calling_server import Server
from seqloom.inside.lecture import LectureScore

LETTERS = "abcd"
SENTENCE = "big runs man sits"


def spoken(server: Server, target: str) -> str:
    """What the page should show: an output that ends at once is told in words."""
    found = server.ask("/api/translate", run="polyglot", texts=[SENTENCE], target=target, beam=5)
    text: str = found["translations"][0]["text"]
    return text or "(nothing: the likeliest is to end at once)"


def test_a_translation_appears_while_one_types(visitor: Visitor, server: Server) -> None:
    page = visitor.open("#/translate?run=polyglot")
    expect(page.get_by_text("The translation appears here, word by word.")).to_be_visible()
    page.get_by_label("Text").press_sequentially(SENTENCE)
    expect(page.get_by_role("group", name="Translation")).to_have_text(spoken(server, "de"))
    assert "text=big+runs+man+sits" in page.url
    page.get_by_label("Into").select_option("fr")
    expect(page.get_by_role("group", name="Translation")).to_have_text(spoken(server, "fr"))
    assert "target=fr" in page.url


def test_a_word_lights_up_what_it_comes_from(visitor: Visitor, server: Server) -> None:
    page = visitor.open(f"#/translate?run=reverser&text={LETTERS}+{LETTERS}")
    word = page.locator(".sheet .word").first
    expect(word).to_have_attribute("title", re.compile(" %, from abcd"))
    expect(page.locator(".behind mark")).to_have_count(0)
    word.hover()
    expect(page.locator(".behind mark").first).to_have_text(LETTERS)
    page.get_by_label("Text").hover()
    expect(page.locator(".behind mark")).to_have_count(0)


def test_another_token_is_chosen_and_the_rest_follows(visitor: Visitor, server: Server) -> None:
    page = visitor.open(f"#/translate?run=reverser&text={LETTERS}")
    words = page.get_by_role("group", name="Translation")
    page.locator(".sheet .word").first.click()
    best = server.ask("/api/translate", run="reverser", texts=[LETTERS], beam=5)
    output = best["translations"][0]["parts"][0]["outputs"][0]
    steps = server.ask("/api/alternatives", run="reverser", text=LETTERS, tokens=output["tokens"])
    offered = [one["piece"] for one in steps["steps"][0] if one["piece"] != "</s>"]
    other = next(one for one in steps["steps"][0] if one["piece"] not in ("</s>", offered[0]))
    expect(page.get_by_role("dialog")).to_contain_text("Instead of")
    assert page.locator(".options button").count() == len(steps["steps"][0])
    page.locator(".options button").filter(has_text=other["piece"]).first.click()
    expected = server.ask(
        "/api/continue", run="reverser", text=LETTERS, begin=[other["token"]], beam=5
    )
    expect(words).to_have_text(expected["output"]["text"])
    assert f"begin=0.{other['token']}" in page.url
    visitor.come("#" + page.url.partition("#")[2])
    expect(words).to_have_text(expected["output"]["text"])
    page.get_by_role("button", name="The model’s own").click()
    expect(words).to_have_text(output["text"])
    assert "begin" not in page.url


def test_a_word_of_ones_own_begins_the_rest(visitor: Visitor) -> None:
    page = visitor.open(f"#/translate?run=reverser&text={LETTERS}")
    page.locator(".sheet .word").first.click()
    page.get_by_label("Another word").fill("cc")
    page.get_by_role("button", name="Put").click()
    expect(page.locator(".sheet .word.given")).to_have_text(re.compile("^cc"))


def test_other_translations_can_be_taken(visitor: Visitor) -> None:
    page = visitor.open(f"#/translate?run=reverser&text={LETTERS}")
    other = page.locator(".versions button").first
    words = other.inner_text()
    other.click()
    expect(page.get_by_role("group", name="Translation")).to_have_text(words)


def test_long_texts_are_translated_sentence_by_sentence(visitor: Visitor, server: Server) -> None:
    text = "Abcd dc. Bc?\n\nDcba"
    page = visitor.open("#/translate?run=reverser")
    page.get_by_label("Text").fill(text)
    page.wait_for_selector("[data-part='2']")
    found = server.ask("/api/translate", run="reverser", texts=[text], beam=5)
    shown = page.get_by_role("group", name="Translation").evaluate("one => one.textContent")
    assert shown == found["translations"][0]["text"]


def test_attention_by_layer_and_head(visitor: Visitor, server: Server) -> None:
    page = visitor.open(f"#/attention?run=transformer&text={LETTERS}&units=pieces&zoom=40")
    found = server.ask("/api/attention", run="transformer", text=LETTERS, pieces=True)
    page.wait_for_selector(".board svg")
    cells = page.locator(".board svg > g rect")
    rows, columns = len(found["outputs"]), len(found["sources"])
    assert cells.count() == rows * columns
    assert page.locator(".board svg > text").all_text_contents()[:4] == list(LETTERS)
    page.get_by_role("button", name="Layer 1, head 2").click()
    assert "head=1.2" in page.url
    page.get_by_text("As a table of numbers").click()
    first = page.locator(".looker tbody tr").first.locator("td")
    expect(first).to_have_text([f"{weight:.2f}" for weight in found["heads"][0][1][0]])
    page.locator(".board").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".looker .reading")).to_contain_text("looks at “b”")


def test_pictures_can_be_taken_away(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.open(f"#/attention?run=reverser&text={LETTERS}")
    page.wait_for_selector(".board svg")
    heads = {"SVG": b"<svg", "PNG": b"\x89PNG"}
    for kind, head in heads.items():
        with page.expect_download() as download:
            page.get_by_role("button", name=kind).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.suffix == f".{kind.lower()}"
        assert path.read_bytes().startswith(head)


def test_long_sentences_are_one_image_in_the_matrix(visitor: Visitor) -> None:
    page = visitor.open("#/attention?run=reverser&zoom=4")
    page.get_by_label("Text").fill("abcd" * 60)
    page.get_by_label("Output").fill("dcba" * 60)
    page.get_by_text("Pieces").click()
    expect(page.locator(".board svg image")).to_have_count(1)


def test_a_search_is_played_step_by_step(visitor: Visitor, server: Server) -> None:
    page = visitor.open(f"#/search?run=reverser&text={LETTERS}&beam=2")
    found = server.ask("/api/search/tree", run="reverser", text=LETTERS, beam=2, n_best=2)
    last = len(found["tree"]["spots"])
    expect(page.locator(".where")).to_have_text(f"step {last} of {last}")
    expect(page.locator(".tree .dropped .small").first).to_contain_text("outscored")
    expect(page.locator(".outputs tbody tr")).to_have_count(2)
    page.get_by_label("Step", exact=True).fill("1")
    expect(page.locator(".where")).to_have_text(f"step 1 of {last}")
    assert page.locator(".tree .step.later").count() == 2 * (last - 1)
    rows = page.locator(".rows tbody tr")
    assert rows.count() == len(found["tree"]["steps"][0])
    assert "step=1" in page.url
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".where")).to_have_text(f"step {last} of {last}")
    page.get_by_label("Beam width").fill("4")
    expect(page.locator(".outputs tbody tr")).to_have_count(4)


def test_the_length_exponent_changes_what_wins(visitor: Visitor, server: Server) -> None:
    page = visitor.open(f"#/search?run=reverser&text={LETTERS}&beam=3&exponent=0")
    found = server.ask("/api/search/tree", run="reverser", text=LETTERS, beam=3, length_exponent=0)
    first = page.locator(".outputs tbody tr").first.locator("td")
    expect(first.nth(3)).to_have_text(found["outputs"][0]["text"])
    expect(first.nth(1)).to_have_text(f"{found['outputs'][0]['score']:.3f}".replace("-", "−"))


def test_a_step_laid_open(visitor: Visitor, server: Server) -> None:
    page = visitor.open(f"#/inside?run=reverser&text={LETTERS}")
    found = server.ask("/api/explain", run="reverser", text=LETTERS, step=2)["explanation"]
    page.locator(".steps button").nth(1).click()
    expect(page.locator(".steps [aria-pressed='true']")).to_contain_text("2")
    weights = next(one for one in found["parts"] if one["name"] == "weights")
    shown = page.locator(".look .share").all_text_contents()
    assert shown == [
        f"{100 * one:.{1 if one < 0.1 else 0}f} %" if one >= 0.001 else "≈ 0"
        for one in weights["values"]
    ]
    for part in found["parts"]:
        expect(page.locator(".story")).to_contain_text(part["formula"])
    expect(page.locator(".readout li").first).to_contain_text(found["best"][0]["piece"])
    assert "step=2" in page.url


def test_a_model_without_a_source_is_laid_open_too(visitor: Visitor) -> None:
    page = visitor.open("#/inside?run=speaker&text=ab")
    expect(page.locator(".laid-open")).to_contain_text("has no attention")
    expect(page.locator(".story")).to_contain_text("softmax(z)")


LECTURE = {
    "q · k": (["1054", "852", "−396"], "(23, 46)"),
    "h · h": (["23", "25", "10"], "(25, 39)"),
    "q · k / √d": (["745", "602", "−280"], "(23, 46)"),
    "q · k / d": (["527", "426", "−198"], "(23, 46)"),
    "hᵀ W h": (["1054", "852", "−396"], "(23, 46)"),
    "σ(q) · σ(k)": (["1.72", "1.94", "0.98"], "(25, 39)"),
    "v · tanh(Wq h + Wk h)": (["2.00", "2.00", "2.00"], "(10, −12)"),
    "−‖q − k‖²": (["−34", "−122", "−2213"], "(23, 46)"),
}
"""Scores of the three keys, and what the best of them alone brings: worked out on paper."""


def test_the_lectures_example_with_every_score(visitor: Visitor) -> None:
    page = visitor.open("#/inside?of=lecture&choice=argmax")
    buttons = page.get_by_role("group", name="Score")
    expect(buttons.locator("span")).to_have_text(list(LECTURE))
    assert len(LECTURE) == len(get_args(LectureScore))
    for score, (scores, context) in LECTURE.items():
        buttons.get_by_text(score, exact=True).click()
        expect(page.locator(".look .score")).to_have_text(scores)
        expect(page.locator(".look .few").first).to_contain_text(context)
    assert "score=rbf" in page.url
    buttons.get_by_text("σ(q) · σ(k)", exact=True).click()
    page.get_by_text("softly").click()
    expect(page.locator(".look .share")).to_have_text(["37 %", "46 %", "18 %"])


def test_two_runs_side_by_side(visitor: Visitor, server: Server) -> None:
    page = visitor.open(f"#/compare?run=reverser&with=transformer&text={LETTERS}")
    page.wait_for_selector(".compared")
    for place, run in enumerate(("reverser", "transformer")):
        found = server.ask("/api/translate", run=run, texts=[LETTERS])
        side = page.locator(".compared").nth(place)
        expect(side.get_by_role("heading")).to_have_text(run)
        expect(side.locator(".words")).to_have_text(found["translations"][0]["text"])
        expect(side.locator(".board svg")).to_be_visible()
    opinions = page.get_by_text("What each thinks of both").locator("..").locator("td")
    assert opinions.count() == 1 + 4
