"""The command line, Python, the HTTP API and the page return the same text for the same input."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import seqloom
from seqloom.inference.options import TEXT_ONLY
from support.browsing import visit
from support.sentence_runs import SENTENCES
from support.server_process import PROGRAM, ServerProcess, start_server

pytestmark = pytest.mark.slow

TEXTS = [
    *SENTENCES,
    " ".join(SENTENCES),
    "  Dog runs.\tCat sits. ",
    "😀😀",
    "😀 Dog runs here. Cat sits. https://x.org",
    "Dog runs 😀 here big. Man 1234 sits.",
    "dog runs here " * 30,
]


@pytest.fixture(scope="module")
def sentence_server(sentence_run: Path) -> Iterator[ServerProcess]:
    server = start_server([sentence_run], "--languages", "en:de", "--limit", "characters=30000")
    yield server
    assert server.stop() == 0


def test_all_interfaces_return_the_same_text(
    sentence_server: ServerProcess, sentence_run: Path
) -> None:
    run = seqloom.load(sentence_run)
    expected = [output.text for output in run.translate(TEXTS)]
    assert [outputs[0].text for outputs in run.predict(TEXTS, TEXT_ONLY)] == expected
    response = sentence_server.post_json("/api/translate", texts=TEXTS)
    assert [each["text"] for each in response["translations"]] == expected
    libre = sentence_server.post_json("/translate", q=TEXTS, source="en", target="de")
    assert libre["translatedText"] == expected
    command = subprocess.run(
        [sys.executable, "-c", PROGRAM, "translate", str(sentence_run)],
        input="\n".join(TEXTS),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert command.stdout.removesuffix("\n").split("\n") == expected


@pytest.mark.parametrize("text", TEXTS[:-1])
def test_a_stream_ends_with_the_same_text(sentence_server: ServerProcess, text: str) -> None:
    stream = sentence_server.post("/api/translate/stream", texts=[text]).text
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    greedy = sentence_server.post_json("/api/translate", texts=[text], beam=1)
    assert events[-1]["text"] == greedy["translations"][0]["text"]
    steps = [event["step"] for event in events if "step" in event]
    assert steps == sorted(set(steps))


def test_a_long_line_without_stops_is_translated_completely(
    sentence_server: ServerProcess,
) -> None:
    line = "dog runs here " * 1_860
    [translation] = sentence_server.post_json("/api/translate", texts=[line], beam=1)[
        "translations"
    ]
    parts = translation["parts"]
    assert len(line) > 26_000
    assert "".join(part["before"] + part["source"] for part in parts) == line.rstrip()
    assert all(part["outputs"][0]["text"] for part in parts)


def test_scores_report_unknown_characters(sentence_server: ServerProcess) -> None:
    scored = sentence_server.post_json("/api/score", sources=["Dog ß", "Dog"], targets=["a", "b"])
    assert "1 of 2 sources contains characters" in scored["warnings"][0]


def test_the_response_reports_unknown_characters(sentence_server: ServerProcess) -> None:
    response = sentence_server.post_json(
        "/api/translate", texts=["Dog ß runs. Cat 😀.", "Dog runs."]
    )
    first, second = response["translations"]
    assert first["unknown"] == ["ß", "😀"]
    assert [part["unknown"] for part in first["parts"]] == [["ß"], ["😀"]]
    assert second["unknown"] == []
    assert "1 of 2 texts contains characters" in response["warnings"][-1]


def test_a_glossary_forces_phrases(sentence_server: ServerProcess) -> None:
    request = {"texts": ["Dog runs here."], "glossary": {"dog": "katze", "runs": "ΩΩ"}}
    response = sentence_server.post_json("/api/translate", **request)
    [translation] = response["translations"]
    assert translation["text"].split().count("katze") == 1
    assert "'ΩΩ' as required: the vocabulary" in translation["warnings"][0]
    streamed = sentence_server.post("/api/translate/stream", **request)
    assert streamed.status_code == 422
    assert "glossary" in streamed.json()["error"]
    many = {str(number): "katze" for number in range(300)}
    too_large = sentence_server.post("/api/translate", **{**request, "glossary": many})
    assert too_large.status_code == 413


def test_copied_segments_are_marked(sentence_server: ServerProcess) -> None:
    request = {"texts": ["😀😀"], "attention": True, "alignment": True, "n_best": 2}
    [translation] = sentence_server.post_json("/api/translate", **request)["translations"]
    [output] = translation["parts"][0]["outputs"]
    assert (output["text"], output["copied"], output["pieces"]) == ("😀😀", True, [])
    plain = sentence_server.post_json("/api/translate", texts=["😀😀"], pass_through=False)
    assert not plain["translations"][0]["parts"][0]["outputs"][0]["copied"]


def test_the_page_marks_unknown_characters(
    browser: Browser, sentence_server: ServerProcess
) -> None:
    context, visitor = visit(browser, sentence_server)
    page = visitor.open("#/translate?text=Dog%20ß%20runs.%20Cat%20sits%20😀")
    marks = page.locator(".highlights mark.unknown")
    expect(marks).to_have_count(2)
    expect(marks.first).to_have_text("ß")
    expect(page.locator(".warning")).to_contain_text("vocabulary does not know: ß 😀")
    expect(page.locator(".translation-output .words")).to_contain_text("😀")
    visitor.settle()
    assert not visitor.axe()
    page.get_by_label("Source text").fill("Dog runs.")
    expect(marks).to_have_count(0)
    visitor.check()
    context.close()
