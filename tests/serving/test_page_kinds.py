"""The page for runs of other kinds, and for what is made of them."""

import json
import re
import time
from pathlib import Path

from playwright.sync_api import FilePayload, expect

from browsing import Visitor
from calling_server import Server
from small_runs import picture


def image(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "image/png", "buffer": content}


def test_an_image_gets_its_caption_and_each_word_its_glance(visitor: Visitor) -> None:
    page = visitor.open("#/caption?beam=2")
    expect(page.get_by_text("The caption appears here")).to_be_visible()
    page.set_input_files("#image", image("wall.png", picture("red", (40, 30))))
    server = visitor.server
    headers = {"Content-Type": "image/png"}
    path = f"{server.url}/api/caption?run=captioner&beam=2"
    sent = server.client.post(path, content=picture("red", (40, 30)), headers=headers).json()
    words = sent["outputs"][0]["text"]
    expect(page.get_by_role("group", name="Caption")).to_have_text(words)
    assert page.locator(".glances li").count() == len(words.split())
    before = page.locator(".captioned canvas").evaluate("one => one.toDataURL()")
    page.locator(".captioned .word").first.hover()
    assert page.locator(".captioned canvas").evaluate("one => one.toDataURL()") != before


def test_what_is_no_image_is_told(visitor: Visitor) -> None:
    page = visitor.open("#/caption")
    page.set_input_files("#image", image("a.png", b"no image at all"))
    expect(page.get_by_role("alert")).to_contain_text("cannot be read as an image")


def test_a_text_grows_and_its_link_grows_the_same(visitor: Visitor) -> None:
    page = visitor.open("#/complete?length=20")
    page.get_by_label("Beginning").fill("ab")
    page.get_by_role("button", name="Go on").click()
    group = page.get_by_role("group", name="Completion")
    expect(group).to_contain_text(re.compile("^ab"))
    grown = group.inner_text()
    found = re.search(r"seed=(\d+)", page.url)
    assert found is not None
    again = visitor.server.ask(
        "/api/complete", prompts=["ab"], seed=int(found[1]), temperature=0.8, max_length=20
    )
    assert again["completions"][0]["outputs"][0]["text"] == grown
    visitor.come("#" + page.url.partition("#")[2])
    expect(group).to_have_text(grown)


def test_a_grown_text_takes_another_turn(visitor: Visitor) -> None:
    page = visitor.open("#/complete?length=20&text=ab&seed=7&temperature=1")
    page.get_by_role("group", name="Completion").locator(".word").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("Another word").fill("cc")
    page.get_by_role("button", name="Put").click()
    expect(page.get_by_role("group", name="Completion")).to_contain_text(re.compile("^abcc"))
    assert page.get_by_label("Beginning").input_value() == "abcc"


def test_numbers_go_on(visitor: Visitor, server: Server) -> None:
    page = visitor.open("#/forecast")
    page.wait_for_selector(".figure-chart")
    given = server.get("/api/forecast/example").json()
    assert len(given["observed"]) == 6
    assert len(given["context"]) == 3
    rows = [[float(f"{value:.5g}") for value in row] for row in given["observed"]]
    known = [[float(f"{value:.5g}") for value in row] for row in given["context"]]
    window = {"observed": rows, "context": known}
    found = server.ask("/api/forecast", windows=[window])["forecasts"][0]
    chart = page.locator(".figure-chart")
    chart.focus()
    page.keyboard.press("End")
    last = float(f"{found[-1][0]:.3g}")
    expect(chart.locator(".reading b").first).to_have_text(f"{last:g}".replace("-", "−"))
    page.get_by_label("Observed: 6 rows of level, push").fill("1, 2\n3, 4")
    expect(page.get_by_role("alert")).to_contain_text("2 rows; the run takes 6")


def test_labels_come_with_their_probabilities(visitor: Visitor, server: Server) -> None:
    page = visitor.open("#/label")
    page.get_by_label("Text").fill("hund katze")
    found = server.ask("/api/label", texts=["hund katze"], every=True)["labels"][0]
    rows = page.locator(".shares li")
    expect(rows).to_have_count(len(found))
    expect(rows.first).to_contain_text(f"({found[0]['label']})")
    expect(rows.first).to_contain_text(f"{100 * found[0]['probability']:.0f} %")


def test_a_training_is_followed(visitor: Visitor, runs: dict[str, Path]) -> None:
    journal = runs["transformer"] / "metrics.jsonl"
    before = journal.read_bytes()
    page = visitor.open("#/train?training=transformer")
    expect(page.get_by_role("status").filter(has_text="Ended")).to_contain_text("step 4 of 4")
    expect(page.locator(".figure-chart").first).to_contain_text("held out")
    try:
        step = {"event": "step", "step": 5, "steps": 9, "loss": 1.0, "seconds_left": 30}
        journal.write_bytes(before + json.dumps({**step, "time": time.time()}).encode() + b"\n")
        page = visitor.open("#/train?training=transformer")
        status = page.get_by_role("status").filter(has_text="Learning")
        expect(status).to_contain_text("step 5 of 9, about 30 s left")
        with journal.open("ab") as file:
            file.write(json.dumps({**step, "step": 6, "time": time.time()}).encode() + b"\n")
        expect(status).to_contain_text("step 6 of 9")
        # Back to a checkpoint: what was written after it never happened.
        journal.write_bytes(before)
        expect(page.get_by_role("status").filter(has_text="Ended")).to_be_visible(timeout=6000)
    finally:
        journal.write_bytes(before)


def test_the_lab_is_browsed(visitor: Visitor, reports: Path) -> None:
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
