"""The views of the web page for other tasks, for training logs and for lab reports."""

import json
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, expect

from seqloom.lab.registry import claim_names
from support.browsing import Visitor
from support.server_process import ServerProcess
from support.small_runs import image_bytes

pytestmark = pytest.mark.slow


def image_file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "image/png", "buffer": content}


def test_image_gets_a_caption_with_the_attention_of_each_word(visitor: Visitor) -> None:
    page = visitor.open("#/caption?beam=2")
    expect(page.get_by_text("The caption appears here")).to_be_visible()
    page.set_input_files("#image", image_file("wall.png", image_bytes("red", (40, 30))))
    server = visitor.server
    headers = {"Content-Type": "image/png"}
    url = f"{server.url}/api/caption?run=captioner&beam=2"
    response = server.client.post(url, content=image_bytes("red", (40, 30)), headers=headers).json()
    text = response["outputs"][0]["text"]
    expect(page.get_by_role("group", name="Caption")).to_have_text(text)
    assert page.locator(".word-attention li").count() == len(text.split())
    before = page.locator(".captioned canvas").evaluate("canvas => canvas.toDataURL()")
    page.locator(".captioned .word").first.hover()
    assert page.locator(".captioned canvas").evaluate("canvas => canvas.toDataURL()") != before


def test_invalid_image_shows_an_error(visitor: Visitor) -> None:
    page = visitor.open("#/caption")
    page.set_input_files("#image", image_file("a.png", b"no image at all"))
    expect(page.get_by_role("alert")).to_contain_text("cannot be read as an image")


def test_completion_is_reproducible_from_its_link(visitor: Visitor) -> None:
    page = visitor.open("#/complete?max_length=20")
    page.get_by_label("Prompt").fill("ab")
    page.get_by_role("button", name="Generate").click()
    completion = page.get_by_role("group", name="Completion")
    expect(completion).to_contain_text(re.compile("^ab"))
    text = completion.inner_text()
    seed = re.search(r"seed=(\d+)", page.url)
    assert seed is not None
    again = visitor.server.post_json(
        "/api/complete", prompts=["ab"], seed=int(seed[1]), temperature=0.8, max_length=20
    )
    assert again["completions"][0]["outputs"][0]["text"] == text
    visitor.load("#" + page.url.partition("#")[2])
    expect(completion).to_have_text(text)


def test_replacing_a_word_continues_the_completion_from_there(visitor: Visitor) -> None:
    page = visitor.open("#/complete?max_length=20&text=ab&seed=7&temperature=1")
    page.get_by_role("group", name="Completion").locator(".word").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("Other word").fill("cc")
    page.get_by_role("button", name="Insert").click()
    expect(page.get_by_role("group", name="Completion")).to_contain_text(re.compile("^abcc"))
    assert page.get_by_label("Prompt").input_value() == "abcc"


def test_chosen_word_continues_the_completion(visitor: Visitor) -> None:
    page = visitor.open("#/complete?max_length=20&text=ab&seed=7&temperature=1")
    page.get_by_role("group", name="Completion").locator(".word").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    options = page.locator(".options button:not([aria-current]) span:first-child")
    words = [word for word in options.all_inner_texts() if word != "end of text"]
    assert all(word.startswith("ab") for word in words), "the words are complete"
    page.locator(".options").get_by_text(words[0], exact=True).first.click()
    expect(page.get_by_role("group", name="Completion")).to_contain_text(re.compile(f"^{words[0]}"))
    assert page.get_by_label("Prompt").input_value() == words[0]


def test_forecast_continues_the_observed_rows(visitor: Visitor, server: ServerProcess) -> None:
    page = visitor.open("#/forecast")
    page.wait_for_selector(".figure-chart")
    example = server.get("/api/forecast/example").json()
    assert len(example["observed"]) == 6
    assert len(example["context"]) == 3
    window = {
        name: [[float(f"{value:.5g}") for value in row] for row in example[name]]
        for name in ("observed", "context")
    }
    forecast = server.post_json("/api/forecast", windows=[window])["forecasts"][0]
    chart = page.locator(".figure-chart")
    chart.focus()
    page.keyboard.press("End")
    last = float(f"{forecast[-1][0]:.3g}")
    expect(chart.locator(".cursor-values b").first).to_have_text(f"{last:g}".replace("-", "−"))
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), "fits the window"
    page.get_by_label("Observed: 6 rows of level, push").fill("1, 2\n3, 4")
    expect(page.get_by_role("alert")).to_contain_text(re.compile(r"\b2 rows.*\b6\b"))


def test_labels_are_listed_with_their_probabilities(
    visitor: Visitor, server: ServerProcess
) -> None:
    page = visitor.open("#/label")
    page.get_by_label("Text").fill("hund katze")
    labels = server.post_json("/api/label", texts=["hund katze"], every=True)["labels"][0]
    rows = page.locator(".label-list li")
    expect(rows).to_have_count(len(labels))
    expect(rows.first).to_contain_text(f"({labels[0]['label']})")
    expect(rows.first).to_contain_text(f"{100 * labels[0]['probability']:.0f} %")


def test_path_in_the_plane_fits_the_window(visitor: Visitor, server: ServerProcess) -> None:
    served = server.get("/api/runs").json()
    [run] = [run for run in served["runs"] if run["kind"] == "forecast"]
    served["runs"] = [{**run, "columns": ["x", "y"], "context": []}]
    path = {"observed": [[0, 0], [1, 1], [2, 5]], "context": []}
    page = visitor.page
    visitor.replace_answers("**/api/runs", lambda route: route.fulfill(json=served))
    visitor.replace_answers("**/api/forecast/example?*", lambda route: route.fulfill(json=path))
    visitor.replace_answers(
        "**/api/forecast", lambda route: route.fulfill(json={"forecasts": [[[3, 9]]]})
    )
    visitor.load("#/forecast")
    expect(page.locator(".trajectory circle.forecast")).to_have_count(1)
    page.set_viewport_size({"width": 1280, "height": 600})
    try:
        box = page.locator(".trajectory").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 600
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


def test_labels_of_characters_are_grouped(visitor: Visitor) -> None:
    labels = [{"label": "U l l l U l l l l", "probability": 0.5}]
    response = {"run": "labeller", "labels": [labels], "warnings": []}
    visitor.replace_answers("**/api/label", lambda route: route.fulfill(json=response))
    page = visitor.load("#/label?text=das+haus.")
    words = page.locator(".tagged-group")
    expect(words).to_have_count(2)
    assert words.nth(0).locator(".tagged-word > span").all_inner_texts() == ["d", "as"]
    assert words.nth(1).locator(".tagged-word > span").all_inner_texts() == ["h", "aus."]
    assert words.nth(1).locator("small").all_inner_texts() == ["U", "l"]


TICKS_OF_INTEGERS = """async (ranges) => {
  const { createScale, tickValues } = await import(`${location.origin}/static/shared/scale.js`);
  return ranges.flatMap((ends) => tickValues(createScale(ends, { tight: true, whole: true }), 9));
}"""


def test_axes_of_steps_have_integer_ticks(visitor: Visitor) -> None:
    page = visitor.open("#/train?training=transformer")
    ticks = page.locator(".figure-chart .x-tick")
    expect(ticks.first).to_be_visible()
    assert all(text.isdecimal() for text in ticks.all_text_contents())
    ranges = [[low, low + length] for low in (0, 1, 160, 12_345) for length in range(30)]
    assert all(tick == round(tick) for tick in page.evaluate(TICKS_OF_INTEGERS, ranges))


def test_training_in_progress_is_followed(visitor: Visitor, runs: dict[str, Path]) -> None:
    event_log = runs["transformer"] / "metrics.jsonl"
    before = event_log.read_bytes()
    page = visitor.open("#/train?training=transformer")
    expect(page.get_by_role("status").filter(has_text="Ended")).to_contain_text("step 4 of 4")
    expect(page.locator(".figure-chart").first).to_contain_text("validation")
    try:
        step = {"event": "step", "step": 5, "steps": 9, "loss": 1.0, "seconds_left": 30}
        event_log.write_bytes(before + json.dumps({**step, "time": time.time()}).encode() + b"\n")
        page = visitor.open("#/train?training=transformer")
        status = page.get_by_role("status").filter(has_text="Training: step")
        expect(status).to_contain_text("step 5 of 9, about 30 s left")
        with event_log.open("ab") as file:
            file.write(json.dumps({**step, "step": 6, "time": time.time()}).encode() + b"\n")
        expect(status).to_contain_text("step 6 of 9")
        # Resuming from a checkpoint truncates the log. The page must drop the later events.
        event_log.write_bytes(before)
        expect(page.get_by_role("status").filter(has_text="Ended")).to_be_visible(timeout=6000)
    finally:
        event_log.write_bytes(before)


def test_published_reports_are_shown_without_a_lab_folder(visitor: Visitor) -> None:
    page = visitor.open("#/lab")
    expect(page.locator(".claims li")).to_have_count(len(claim_names()))
    page.get_by_role("group", name="Show").get_by_text("refuted").click()
    assert set(page.locator(".claims .badge").all_inner_texts()) == {"refuted"}
    page.locator(".claims a").first.click()
    expect(page.locator(".report .figure-chart, .report .bars").first).to_be_visible()


def test_lab_reports_are_listed_and_shown(visitor: Visitor, reports: Path) -> None:
    report = json.loads((reports / "report.json").read_bytes())
    page = visitor.open("#/lab")
    page.get_by_role("link", name=report["sentence"]).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(report["sentence"])
    expect(page.get_by_text("undecided", exact=True)).to_be_visible()
    assert page.locator(".figure-chart, .bars").count() == len(report["charts"])
    cells = page.get_by_role("region", name="Numbers").first.locator("tbody td")
    assert cells.first.inner_text() == report["table"][1][1]
    page.get_by_role("link", name="All claims").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Lab")
