"""Response times of the web page in a browser.

Measures the time from `seqloom serve` to the first translation on the page, from opening the page to
its first paint and to its first view, and from an action of the user to the drawn result. With
`--before`, the page of another checkout of seqloom is measured alternately with the present one.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from bench.serving.checkout import PRESENT, add_before_option, commit_of, in_turn
from bench.serving.service import LISTENING, running_server
from bench.tables import markdown
from tools.screenshots import chromium

SENTENCES = (
    "Ich habe ihn gestern gesehen.",
    "Das gefällt mir.",
    "Wo ist der Bahnhof?",
    "Wir haben keine Zeit.",
    "Kannst du mir helfen?",
    "Tom wartet auf dich.",
    "Sie hat zwei Kinder.",
    "Er liest ein Buch.",
)
"""German, the source language of the demo run."""
STARTS = 7
LOADS = 20
FIRST_VIEW = ".view textarea"
FIRST_WORDS, FINAL_WORDS = ".output .words", ".translation-output .word"
"""Selectors of the streamed words, and of the final translation with probabilities."""
OTHER_WORDS = ".options button:not([aria-current])"
"""Selector of the alternatives to a word."""
CHANGED = ".translation-output .tools button"
"""Selector of the buttons below a translation that the user has changed."""
VIEW_RESULTS = {
    "attention": ".map-scroll svg",
    "search": ".tree .token",
    "inside": ".attention-diagram",
}
"""Selector of the result of each view. The selectors of this file are also those of earlier versions."""
RECORD_PAINT_TIMES = (
    (Path(__file__).parent / "paint_times.js")
    .read_text(encoding="utf-8")
    .replace("SELECTORS", json.dumps([FIRST_VIEW, FIRST_WORDS, FINAL_WORDS]))
)
TIME_ACTION = (Path(__file__).parent / "time_action.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class PageMeasure:
    """A row of the report.

    name: key in the results
    begin, end: events between which the time passes
    target: largest median that the project aims at
    """

    name: str
    begin: str
    end: str
    target: str = ""


IMPORT_TORCH = PageMeasure(
    "import_torch", '`python -c "import torch"`', "exit, measured alternately with the starts"
)
MEASURES = (
    PageMeasure("start_first_words", "`seqloom serve`", "first words of a translation", "5 s"),
    PageMeasure("start_final", "`seqloom serve`", "final translation with probabilities"),
    IMPORT_TORCH,
    PageMeasure("first_paint", "opening the page, empty browser cache", "first contentful paint"),
    PageMeasure("first_view", "opening the page, empty browser cache", "first view with its controls"),
    PageMeasure("typing", "last typed letter", "translation, including a pause of 160 ms"),
    PageMeasure("alternatives", "click on a word", "list of alternatives"),
    PageMeasure("choice", "choice of an alternative", "new output", "300 ms"),
    PageMeasure("attention", "switch to the view Attention", "attention map"),
    PageMeasure("search", "switch to the view Beam search", "search tree"),
    PageMeasure("inside", "switch to the view Decoder step", "diagram of the step"),
)  # fmt: skip
Samples = dict[str, list[float]]
"""Milliseconds of each measurement, by the names of the measures."""


@contextmanager
def opened_page(browser: Browser, port: int) -> Iterator[Page]:
    """Open the page in a new browser context, whose cache is empty."""
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(RECORD_PAINT_TIMES)
    page.goto(f"http://127.0.0.1:{port}/")
    yield page
    context.close()


def wait_painted(page: Page, name: str) -> float:
    """Wait until an element is on the screen. Returns its time in milliseconds since 1970."""
    milliseconds: float = page.wait_for_function(
        "name => window.painted[name]", arg=name
    ).json_value()
    return milliseconds


def measure_start(browser: Browser, run: Path, checkout: Path, samples: Samples) -> None:
    """Time from the command to the translations. Opens the page as soon as the server listens."""
    started = 1000 * time.time()
    with (
        running_server(run, log_line=LISTENING, checkout=checkout) as port,
        opened_page(browser, port) as page,
    ):
        samples["start_first_words"].append(wait_painted(page, FIRST_WORDS) - started)
        samples["start_final"].append(wait_painted(page, FINAL_WORDS) - started)


def measure_import(samples: Samples) -> None:
    """Time to import torch, a lower bound for the start of the server."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    samples[IMPORT_TORCH.name].append(1000 * (time.perf_counter() - started))


def measure_opening(browser: Browser, port: int, samples: Samples) -> None:
    """Time from opening the page of a server that has loaded its runs to the first view."""
    with opened_page(browser, port) as page:
        opened = page.evaluate("performance.timeOrigin")
        samples["first_view"].append(wait_painted(page, FIRST_VIEW) - opened)
        samples["first_paint"].append(wait_painted(page, "first-contentful-paint") - opened)


def time_action(element: Locator, selector: str, text: str | None = None) -> float:
    milliseconds: float = element.evaluate(TIME_ACTION, [text, selector])
    return milliseconds


def measure_sentence(page: Page, sentence: str, samples: Samples) -> None:
    """Type a sentence, replace words of its translation, and show it in the other views."""
    page.bring_to_front()
    source = page.get_by_label("Source text")
    source.fill("")
    page.wait_for_selector(".examples")
    samples["typing"].append(time_action(source, FINAL_WORDS, sentence))
    for number in range(min(3, page.locator(FINAL_WORDS).count())):
        measure_choice(page, number, samples)
    for view, selector in VIEW_RESULTS.items():
        samples[view].append(time_action(page.locator(f"#views [data-view={view}]"), selector))
    page.locator("#views [data-view=translate]").click()
    page.wait_for_selector(FINAL_WORDS)


def measure_choice(page: Page, number: int, samples: Samples) -> None:
    """Open the alternatives of a word, choose the most probable other one, and reset the output."""
    word = page.locator(FINAL_WORDS).nth(number)
    samples["alternatives"].append(time_action(word, OTHER_WORDS))
    samples["choice"].append(time_action(page.locator(OTHER_WORDS).first, CHANGED))
    page.get_by_role("button", name="Reset to the model’s output").click()
    page.wait_for_selector(CHANGED, state="detached")


def measure_checkouts(
    run: Path, checkouts: dict[str, Path], starts: int, loads: int
) -> dict[str, Samples]:
    """Samples of each checkout. All of them are measured in turn."""
    samples: dict[str, Samples] = {name: {each.name: [] for each in MEASURES} for name in checkouts}
    names = list(checkouts)
    with sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for number in range(starts):
            measure_import(samples[names[0]])
            for name in in_turn(names, number):
                measure_start(browser, run, checkouts[name], samples[name])
        ports = {
            name: stack.enter_context(running_server(run, checkout=checkout))
            for name, checkout in checkouts.items()
        }
        for number in range(loads):
            for name in in_turn(names, number):
                measure_opening(browser, ports[name], samples[name])
        pages = {name: stack.enter_context(opened_page(browser, ports[name])) for name in names}
        for number, sentence in enumerate(SENTENCES):
            for name in in_turn(names, number):
                measure_sentence(pages[name], sentence, samples[name])
    return samples


def summarise(values: list[float]) -> dict[str, float]:
    """Median and 95th percentile (nearest rank: the maximum of fewer than 20 values)."""
    return {
        "p50": round(statistics.median(values), 1),
        "p95": round(sorted(values)[math.ceil(0.95 * len(values)) - 1], 1),
        "count": len(values),
    }


def format_time(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.0f} ms"


def row(measure: PageMeasure, results: dict[str, Any]) -> list[str]:
    now = results["now_ms"][measure.name]
    cells = [measure.begin, measure.end, format_time(now["p50"]), format_time(now["p95"])]
    if "before_ms" in results:
        before = results["before_ms"].get(measure.name)
        if before is None:
            cells += ["", "", ""]
        else:
            ratio = f"{now['p50'] / before['p50']:.2f}"
            cells += [format_time(before["p50"]), format_time(before["p95"]), ratio]
    return [*cells, measure.target]


def table(results: dict[str, Any]) -> str:
    head, compared = ["from", "to", "median", "p95"], ""
    if "before_ms" in results:
        head += ["median before", "p95 before", "ratio of medians"]
        commit = results["before_commit"]
        compared = f" Before: commit {commit}, measured alternately on the same run."
    counts = {key: each["count"] for key, each in results["now_ms"].items()}
    load = f"Load average before the measurement: {results['load_before']}. Run: {results['run']}.{compared}"
    last = (
        f"A start is measured {counts['start_final']} times, the opening of the page "
        f"{counts['first_paint']} times, an action\n{counts['typing']} to {counts['choice']} times. p95 is "
        "the maximum where there are fewer than 20 measurements."
    )
    rows = [row(each, results) for each in MEASURES]
    return "\n\n".join([load, markdown([*head, "target"], rows), last])


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path)
    parser.add_argument("--starts", type=int, default=STARTS, help="number of starts of the server")
    parser.add_argument("--loads", type=int, default=LOADS, help="number of times the page opens")
    add_before_option(parser)


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    load = round(os.getloadavg()[0], 1)
    checkouts = {"now": PRESENT} | ({"before": options.before} if options.before else {})
    samples = measure_checkouts(options.run, checkouts, options.starts, options.loads)
    times = {
        f"{name}_ms": {key: summarise(values) for key, values in each.items() if values}
        for name, each in samples.items()
    }
    commit = {"before_commit": commit_of(options.before)} if options.before else {}
    yield {**times, **commit, "run": options.run.name, "load_before": load}
