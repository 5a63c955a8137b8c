"""Measure the response times of the web page in a browser: python -m bench.page_speed RUN

Measures the time from `seqloom serve` to the first translation on the page, from choosing another
token to the new output, and from the last typed letter to the translation.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from bench.machine import describe_environment
from bench.serving import LISTENING, running_server
from tools.screenshots import chromium

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "page.json"
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
START_MEASURES = ("first_words_seconds", "opening_seconds", "import_torch_seconds")
FIRST_WORDS, FINAL_WORDS = ".output .words", ".translation-output .word"
"""Selectors of the streamed words, and of the final translation with probabilities."""
RECORD_PAINT_TIMES = """
window.painted = {};
new MutationObserver(() => {
  for (const selector of [".output .words", ".translation-output .word"]) {
    if (selector in painted || !document.querySelector(selector)) continue;
    painted[selector] = null;
    // The element is on the screen one frame after the one in which it is drawn.
    requestAnimationFrame(() => requestAnimationFrame((now) => {
      painted[selector] = (performance.timeOrigin + now) / 1000;
    }));
  }
}).observe(document, { childList: true, subtree: true });
"""
"""Records in the browser when an element is first on the screen. Polling from outside would add about
a third of a second."""
TIME_CHOICE = """() => new Promise((resolve) => {
  const group = document.querySelector("[aria-label=Translation]");
  const started = performance.now();
  new MutationObserver((_, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - started));
  }).observe(group, { childList: true, subtree: true });
  document.querySelector(".options button:not([aria-current])").click();
})"""
"""Clicks on the most probable alternative. Resolves to the milliseconds until the new output is drawn."""


def measure_start(browser: Browser, run: Path) -> list[float]:
    """Seconds from the command to the first words of a translation, and to the final translation.

    Opens the page as soon as the server listens.
    """
    started = time.time()
    with running_server(run, log_line=LISTENING) as port:
        page = browser.new_page()
        page.add_init_script(RECORD_PAINT_TIMES)
        page.goto(f"http://127.0.0.1:{port}/")
        painted = [
            page.wait_for_function(
                "selector => window.painted[selector]", arg=selector
            ).json_value()
            for selector in (FIRST_WORDS, FINAL_WORDS)
        ]
        page.close()
    return [seconds - started for seconds in painted]


def measure_import() -> float:
    """Seconds to import torch, a lower bound for the start of the server."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.perf_counter() - started


def measure_typing(page: Page, sentence: str) -> float:
    """Milliseconds from the last letter to the final translation, including the pause of 160 ms."""
    page.get_by_label("Source text").fill("")
    page.wait_for_selector(".examples")
    started = time.perf_counter()
    page.get_by_label("Source text").fill(sentence)
    page.wait_for_selector(FINAL_WORDS)
    return 1000 * (time.perf_counter() - started)


def measure_choice(page: Page, word: int) -> float:
    """Milliseconds from choosing another token for a word to the new output."""
    page.locator(FINAL_WORDS).nth(word).click()
    page.wait_for_selector(".options button")
    milliseconds: float = page.evaluate(TIME_CHOICE)
    page.get_by_role("button", name="Reset to the model’s output").click()
    page.wait_for_selector(".forced", state="detached")
    return milliseconds


def summarise(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "p50": round(statistics.median(ordered), 1),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
        "count": len(ordered),
    }


def measure(run: Path) -> dict[str, Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        starts = [(*measure_start(browser, run), measure_import()) for _ in range(STARTS)]
        typing_times, choice_times = [], []
        with running_server(run) as port:
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{port}/#/translate")
            for sentence in SENTENCES:
                typing_times.append(measure_typing(page, sentence))
                words = page.locator(FINAL_WORDS).count()
                choice_times += [measure_choice(page, word) for word in range(min(3, words))]
        browser.close()
    return {
        **{
            name: [round(each, 2) for each in seconds]
            for name, seconds in zip(START_MEASURES, zip(*starts, strict=True), strict=True)
        },
        "typing_ms": summarise(typing_times),
        "choosing_ms": summarise(choice_times),
    }


def render_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    facts = results["about"]
    typing, choice = (results[key] for key in ("typing_ms", "choosing_ms"))
    first, final, torch_import = (results[key] for key in START_MEASURES)
    return f"""# Response times of the web page

Written by `{facts["command"]}` ({facts["date"]}) in a browser: {facts["machine"]}, torch {facts["torch"]}; load
average before the measurement: {results["load_before"]}. Run: {results["run"]}.

| from | to | median | 95th percentile, or maximum of {len(first)} starts | target |
|---|---|---:|---:|---:|
| `seqloom serve` | first words of a translation on the page | {statistics.median(first):.1f} s | {max(first):.1f} s | 5 s |
| `seqloom serve` | final translation with probabilities and alternatives | {statistics.median(final):.1f} s | {max(final):.1f} s | |
| `python -c "import torch"` | exit, measured alternately with the starts | {statistics.median(torch_import):.1f} s | {max(torch_import):.1f} s | |
| choice of another token | new output | {choice["p50"]:.0f} ms | {choice["p95"]:.0f} ms | 300 ms |
| last typed letter | translation, including a pause of 160 ms | {typing["p50"]:.0f} ms | {typing["p95"]:.0f} ms | |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    run = parser.parse_args().run
    load = round(os.getloadavg()[0], 1)
    facts = {**describe_environment(0), "command": f"python -m bench.page_speed {run}"}
    results = {**measure(run), "run": run.name, "load_before": load, "about": facts}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    RESULTS.with_suffix(".md").write_text(render_table(results), encoding="utf-8")
    print(render_table(results))


if __name__ == "__main__":
    main()
