"""The views of the web page for translation runs show what the server returns."""

import re
from pathlib import Path
from typing import get_args

import pytest
from playwright.sync_api import expect

from seqloom.analysis.attention_example import LectureScore
from support.browsing import VIEW_LINKS, VIEWS, Visitor
from support.server_process import ServerProcess

pytestmark = pytest.mark.slow

LETTERS = "abcd"
SENTENCE = "big runs man sits"


def expected_translation(server: ServerProcess, target: str) -> str:
    """The text that the page should show, with the note for an empty output."""
    response = server.post_json(
        "/api/translate", run="polyglot", texts=[SENTENCE], target=target, beam=5
    )
    text: str = response["translations"][0]["text"]
    return text or "(empty output: END is the most probable first token)"


def test_translation_appears_while_typing(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open("#/translate?run=polyglot")
    expect(page.get_by_text("The translation appears here as you type.")).to_be_visible()
    page.get_by_label("Source text").press_sequentially(SENTENCE)
    translation = page.get_by_role("group", name="Translation")
    expect(translation).to_have_text(expected_translation(server, "de"))
    assert "text=big+runs+man+sits" in page.url
    page.get_by_label("Target language").select_option("fr")
    expect(translation).to_have_text(expected_translation(server, "fr"))
    assert "target=fr" in page.url


def test_hovering_a_word_highlights_its_source_words(
    visitor: Visitor, server: ServerProcess
) -> None:
    page = visitor.open(f"#/translate?run=reverser&text={LETTERS}+{LETTERS}")
    marks = page.locator(".highlights mark:not(.unknown)")
    word = page.locator(".translation-output .word").first
    expect(word).to_have_attribute("title", re.compile(" %, aligned with abcd"))
    expect(marks).to_have_count(0)
    word.hover()
    expect(marks.first).to_have_text(LETTERS)
    page.get_by_label("Source text").hover()
    expect(marks).to_have_count(0)


def test_replacing_a_word_decodes_the_rest_again(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(f"#/translate?run=reverser&text={LETTERS}")
    translation = page.get_by_role("group", name="Translation")
    page.locator(".translation-output .word").first.click()
    best = server.post_json("/api/translate", run="reverser", texts=[LETTERS], beam=5)
    output = best["translations"][0]["parts"][0]["outputs"][0]
    expect(page.get_by_role("dialog")).to_contain_text("Alternatives to")
    options = page.locator(".options button")
    expect(page.locator(".options [aria-current]")).to_contain_text(output["text"])
    words = options.locator("span:first-child").all_inner_texts()
    assert len(set(words)) == len(words) > 2
    other = next(word for word in words if word not in (output["text"], "end of text"))
    page.locator(".options").get_by_text(other, exact=True).click()
    expect(translation).to_have_text(other)
    [forced] = re.findall(r"begin=0\.([\d.]+)", page.url)
    expected = server.post_json(
        "/api/continue",
        run="reverser",
        text=LETTERS,
        begin=list(map(int, forced.split("."))),
        beam=5,
    )
    assert expected["output"]["text"] == other
    visitor.load("#" + page.url.partition("#")[2])
    expect(translation).to_have_text(other)
    page.get_by_role("button", name="Reset to the model’s output").click()
    expect(translation).to_have_text(output["text"])
    assert "begin" not in page.url


def test_typed_word_replaces_a_word(visitor: Visitor) -> None:
    page = visitor.open(f"#/translate?run=reverser&text={LETTERS}")
    page.locator(".translation-output .word").first.click()
    page.get_by_label("Other word").fill("cc")
    page.get_by_role("button", name="Insert").click()
    expect(page.locator(".translation-output .word.forced")).to_have_text(re.compile("^cc"))


def test_other_translations_can_be_selected(visitor: Visitor) -> None:
    page = visitor.open(f"#/translate?run=reverser&text={LETTERS}")
    other = page.locator(".n-best button").first
    text = other.inner_text()
    other.click()
    expect(page.get_by_role("group", name="Translation")).to_have_text(text)


def test_long_texts_are_translated_sentence_by_sentence(
    visitor: Visitor, server: ServerProcess
) -> None:
    text = "Abcd dc. Bc?\n\nDcba"
    page = visitor.open("#/translate?run=reverser")
    page.get_by_label("Source text").fill(text)
    page.wait_for_selector("[data-sentence='2']")
    response = server.post_json("/api/translate", run="reverser", texts=[text], beam=5)
    shown = page.get_by_role("group", name="Translation").evaluate("group => group.textContent")
    assert shown == response["translations"][0]["text"]


def test_attention_by_layer_and_head(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(f"#/attention?run=transformer&text={LETTERS}&units=pieces&zoom=40")
    response = server.post_json("/api/attention", run="transformer", text=LETTERS, pieces=True)
    page.wait_for_selector(".map-scroll svg")
    cells = page.locator(".map-scroll svg > g rect")
    rows, columns = len(response["outputs"]), len(response["sources"])
    assert cells.count() == rows * columns
    assert page.locator(".map-scroll svg > text").all_text_contents()[:4] == list(LETTERS)
    page.get_by_role("button", name="Layer 1, head 2").click()
    assert "head=1.2" in page.url
    page.get_by_text("Show as table").click()
    first_row = page.locator(".attention-map tbody tr").first.locator("td")
    expect(first_row).to_have_text([f"{weight:.2f}" for weight in response["heads"][0][1][0]])
    page.locator(".map-scroll").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".attention-map .cursor-values")).to_contain_text("attends to “b”")


def test_attention_as_lines(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(f"#/attention?run=reverser&text={LETTERS}&units=pieces&as=arcs")
    response = server.post_json("/api/attention", run="reverser", text=LETTERS, pieces=True, beam=5)
    large = [weight for row in response["weights"] for weight in row if weight >= 0.05]
    expect(page.locator(".attention-arcs path")).to_have_count(len(large))
    page.get_by_text("Matrix", exact=True).click()
    expect(page.locator(".map-scroll svg")).to_be_visible()
    assert "as=matrix" in page.url


def test_attention_map_can_be_downloaded(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.open(f"#/attention?run=reverser&text={LETTERS}")
    page.wait_for_selector(".map-scroll svg")
    for image_format, header in {"SVG": b"<svg", "PNG": b"\x89PNG"}.items():
        with page.expect_download() as download:
            page.get_by_role("button", name=image_format).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.suffix == f".{image_format.lower()}"
        assert path.read_bytes().startswith(header)


def test_large_attention_map_is_one_image(visitor: Visitor) -> None:
    page = visitor.open("#/attention?run=reverser&zoom=4")
    page.get_by_label("Source text").fill("abcd" * 60)
    page.get_by_label("Output", exact=True).fill("dcba" * 60)
    page.get_by_text("Subword pieces").click()
    expect(page.locator(".map-scroll svg image")).to_have_count(1)


def test_beam_search_is_played_step_by_step(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(f"#/search?run=reverser&text={LETTERS}&beam=2")
    response = server.post_json("/api/search/tree", run="reverser", text=LETTERS, beam=2, n_best=2)
    last = len(response["tree"]["spots"])
    step_label = page.locator(".step-label")
    expect(step_label).to_have_text(f"step {last} of {last}")
    first_step = response["tree"]["spots"][0]
    reason = next(node["reason"] for node in first_step if node["fate"] == "dropped")
    expect(page.locator(".tree .dropped .small").first).to_contain_text(reason)
    expect(page.locator(".outputs tbody tr")).to_have_count(2)
    page.get_by_label("Step", exact=True).fill("1")
    expect(step_label).to_have_text(f"step 1 of {last}")
    assert page.locator(".tree .step.later").count() == 2 * (last - 1)
    rows = page.locator(".candidates tbody tr")
    assert rows.count() == len(response["tree"]["steps"][0])
    assert "step=1" in page.url
    page.get_by_role("button", name="Play").click()
    expect(step_label).to_have_text(f"step {last} of {last}")
    page.get_by_label("Beam width").fill("4")
    expect(page.locator(".outputs tbody tr")).to_have_count(4)


def test_length_penalty_changes_the_ranking(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(f"#/search?run=reverser&text={LETTERS}&beam=3&exponent=0")
    response = server.post_json(
        "/api/search/tree", run="reverser", text=LETTERS, beam=3, length_penalty=0
    )
    first = page.locator(".outputs tbody tr").first.locator("td")
    expect(first.nth(3)).to_have_text(response["outputs"][0]["text"])
    expect(first.nth(1)).to_have_text(f"{response['outputs'][0]['score']:.3f}".replace("-", "−"))


def test_end_can_count_in_the_length(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(f"#/search?run=reverser&text={LETTERS}&beam=3")
    note = page.locator("section.card", has=page.locator(".outputs")).locator("p.note")
    expect(note).to_have_text("END does not count in the length of an output.")
    page.get_by_text("with END", exact=True).click()
    expect(note).to_have_text("END counts in the length of an output.")
    assert "end=yes" in page.url
    response = server.post_json(
        "/api/search/tree", run="reverser", text=LETTERS, beam=3, length_counts_end=True
    )
    assert response["length_counts_end"]
    score = page.locator(".outputs tbody tr").first.locator("td").nth(1)
    expect(score).to_have_text(f"{response['outputs'][0]['score']:.3f}".replace("-", "−"))


def test_decoder_step_shows_every_value(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(f"#/inside?run=reverser&text={LETTERS}")
    response = server.post_json("/api/explain", run="reverser", text=LETTERS, step=2)["explanation"]
    page.locator(".steps button").nth(1).click()
    expect(page.locator(".steps [aria-pressed='true']")).to_contain_text("2")
    weights = next(part for part in response["parts"] if part["name"] == "weights")
    shown = page.locator(".attention-diagram .weight-label").all_text_contents()
    assert shown == [
        f"{100 * weight:.{1 if weight < 0.1 else 0}f} %" if weight >= 0.001 else "≈ 0"
        for weight in weights["values"]
    ]
    for part in response["parts"]:
        expect(page.locator(".step-values")).to_contain_text(part["formula"])
    expect(page.locator(".next-tokens li").first).to_contain_text(response["best"][0]["piece"])
    assert "step=2" in page.url


@pytest.mark.parametrize("run", ["reverser", "transformer"])
def test_sections_of_a_decoder_step_can_be_closed(visitor: Visitor, run: str) -> None:
    page = visitor.open(f"#/inside?run={run}&text={LETTERS}")
    section = page.locator(".step-values details").first
    value = section.locator(".step-value").first
    expect(value).to_be_visible()
    section.locator("summary").first.click()
    expect(value).to_be_hidden()


VIEW_TERMS = {
    "translate": ["Beam width", "probability", "Attention", "Decoder step"],
    "complete": ["Prompt", "Generate", "Temperature", "Top-k", "Top-p", "Maximum length"],
    "caption": ["Beam width", "attention of each word"],
    "forecast": ["Observed", "Context of the next"],
    "label": ["Labels"],
    "attention": ["Source text", "Subword pieces", "Matrix", "attention weight"],
    "search": ["Beam width", "Length penalty", "candidates", "not in the top k", "Score", "log p"],
    "inside": ["Most probable tokens", "query", "keys", "context", "softmax"],
    "compare": ["First run", "Second run", "log p per token", "Log-probability of each output"],
    "train": ["Loss", "Validation", "Learning rate", "tokens per second", "Parameters"],
    "lab": ["Reasons", "Confirmed if", "Refuted if", "Decision rule"],
}
MODEL_FREE_TERMS = {
    "#/inside?of=lecture": ["Score function", "Weights", "Query from", "softmax"],
    "#/inside?of=lookup": ["Lookup", "Temperature", "gradient with respect to the query"],
}
REPLACED_TERMS = (
    "What it says", "Beginning", "Go on", "outscored", "Of the best", "Share of probability",
    "How it was found", "Where it looked", "Inside", "put out",
)  # fmt: skip
"""Labels for which the field has another term."""
ALL_TEXTS = """main => [main.innerText, ...["aria-label", "title", "placeholder"].flatMap((name) =>
  [...main.querySelectorAll(`[${name}]`)].map((each) => each.getAttribute(name)))].join(" ")"""
"""The visible text of the page, and the texts for tooltips and screen readers."""


@pytest.mark.parametrize(
    ("link", "terms"),
    [*((VIEW_LINKS[view], VIEW_TERMS[view]) for view in VIEWS), *MODEL_FREE_TERMS.items()],
)
def test_labels_are_the_terms_of_the_field(
    visitor: Visitor, reports: Path, link: str, terms: list[str]
) -> None:
    main = visitor.open(link).locator("main")
    for term in terms:
        expect(main).to_contain_text(term)
    text = main.evaluate(ALL_TEXTS)
    assert [term for term in REPLACED_TERMS if term in text] == []


def test_decoder_step_of_a_language_model(visitor: Visitor) -> None:
    page = visitor.open("#/inside?run=speaker&text=ab")
    expect(page.locator(".step-layout")).to_contain_text("has no attention")
    expect(page.locator(".step-values")).to_contain_text("softmax(z)")


EXAMPLE_RESULTS = {
    "q · k": (["1054", "852", "−396"], "(23, 46)"),
    "h · h": (["23", "25", "10"], "(25, 39)"),
    "q · k / √d": (["745", "602", "−280"], "(23, 46)"),
    "q · k / d": (["527", "426", "−198"], "(23, 46)"),
    "hᵀ W h": (["1054", "852", "−396"], "(23, 46)"),
    "σ(q) · σ(k)": (["1.72", "1.94", "0.98"], "(25, 39)"),
    "v · tanh(Wq h + Wk h)": (["2.00", "2.00", "2.00"], "(10, −12)"),
    "−γ‖q − k‖²": (["−34", "−122", "−2213"], "(23, 46)"),
}
"""Scores of the three keys, and the context with argmax weights, computed by hand."""


def test_worked_example_with_every_score_function(visitor: Visitor) -> None:
    page = visitor.open("#/inside?of=lecture&choice=argmax")
    buttons = page.get_by_role("group", name="Score function")
    expect(buttons.locator("span")).to_have_text(list(EXAMPLE_RESULTS))
    assert len(EXAMPLE_RESULTS) == len(get_args(LectureScore))
    for formula, (scores, context) in EXAMPLE_RESULTS.items():
        buttons.get_by_text(formula, exact=True).click()
        expect(page.locator(".attention-diagram .score")).to_have_text(scores)
        expect(page.locator(".attention-diagram .written").first).to_contain_text(context)
    assert "score=rbf" in page.url
    buttons.get_by_text("σ(q) · σ(k)", exact=True).click()
    page.get_by_role("group", name="Weights").get_by_text("softmax").click()
    weights = page.locator(".attention-diagram .weight-label")
    expect(weights).to_have_text(["37 %", "46 %", "18 %"])


def test_edited_matrices_change_the_worked_example_and_are_in_the_link(visitor: Visitor) -> None:
    page = visitor.open("#/inside?of=lecture&choice=argmax")
    page.get_by_label("h₂, column 1").fill("-4")
    query = page.locator(".attention-diagram .written").last
    expect(query).to_have_text("(−4, 19)")
    page.get_by_role("group", name="Query from").get_by_text("h₃").click()
    expect(query).to_have_text("(−2, 50)")
    page.get_by_label("States").select_option("4")
    page.get_by_label("Width of v").select_option("1")
    expect(page.locator(".attention-diagram .score")).to_have_count(4)
    expect(page.locator(".attention-diagram .written").first).to_have_text("(23)")
    for part in ("h=5%2C1%3B-4%2C3%3B-2%2C6%3B0%2C0", "wv=4%2C3", "query=3", "choice=argmax"):
        assert part in page.url
    visitor.load("#" + page.url.partition("#")[2])
    expect(query).to_have_text("(−2, 50)")
    assert page.get_by_label("h₂, column 1").input_value() == "-4"
    page.get_by_label("Wk, row 2, column 1").fill("six")
    expect(page.get_by_role("alert")).to_contain_text("row 2, column 1: must be a number")
    expect(query).to_have_text("(−2, 50)")
    page.get_by_role("button", name="Restore the numbers of the lecture").click()
    expect(query).to_have_text("(4, 35)")
    assert "wv=" not in page.url


def test_two_runs_side_by_side(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open(f"#/compare?run=reverser&with=transformer&text={LETTERS}")
    page.wait_for_selector(".compared")
    for index, run in enumerate(("reverser", "transformer")):
        response = server.post_json("/api/translate", run=run, texts=[LETTERS])
        column = page.locator(".compared").nth(index)
        expect(column.get_by_role("heading")).to_have_text(run)
        text = response["translations"][0]["text"] or "(empty output)"
        expect(column.locator(".words")).to_have_text(text)
        expect(column.locator(".map-scroll svg")).to_be_visible()
    table = page.get_by_text("Log-probability of each output").locator("..").locator("td")
    assert table.count() == 1 + 4
