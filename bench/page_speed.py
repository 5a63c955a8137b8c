"""How fast the page is, as people feel it: python -m bench.page_speed RUN

From `seqloom serve` to words on the page; from choosing another token to the words that follow;
from the last letter typed to a translation. In a browser, on this machine.
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

from bench.machine import about
from bench.serving import LISTENING, served
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
"""German, as the demo reads it."""
STARTS = 7
OPENING = ("first_words_seconds", "opening_seconds", "import_torch_seconds")
WATCH = """
window.painted = {};
new MutationObserver(() => {
  for (const what of [".output .words", ".sheet .word"]) {
    if (what in painted || !document.querySelector(what)) continue;
    painted[what] = null;
    // The frame after the one in which it is drawn.
    requestAnimationFrame(() => requestAnimationFrame((now) => {
      painted[what] = (performance.timeOrigin + now) / 1000;
    }));
  }
}).observe(document, { childList: true, subtree: true });
"""
"""Seconds at which something was first on the screen. The browser knows: who asks it from outside
hears of it a third of a second later."""
CHOOSE = """() => new Promise((resolve) => {
  const group = document.querySelector("[aria-label=Translation]");
  const begun = performance.now();
  new MutationObserver((_, all) => {
    all.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - begun));
  }).observe(group, { childList: true });
  document.querySelectorAll(".options button")[1].click();
})"""
"""Milliseconds from the press on the second best token to the picture with what follows."""


def opens(browser: Browser, run: Path) -> list[float]:
    """Seconds from the command to the first words of a translation, and to all that is said about
    it. The page is opened as soon as it is announced."""
    begun = time.time()
    with served(run, sign=LISTENING) as port:
        page = browser.new_page()
        page.add_init_script(WATCH)
        page.goto(f"http://127.0.0.1:{port}/")
        seen = [
            page.wait_for_function("what => window.painted[what]", arg=what).json_value()
            for what in (".output .words", ".sheet .word")
        ]
        page.close()
    return [each - begun for each in seen]


def bare_import() -> float:
    """Seconds of what no such service can do without."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.perf_counter() - begun


def typing(page: Page, sentence: str) -> float:
    """Milliseconds from the last letter to the final translation, the pause of 160 included."""
    page.get_by_label("Text").fill("")
    page.wait_for_selector(".examples")
    begun = time.perf_counter()
    page.get_by_label("Text").fill(sentence)
    page.wait_for_selector(".sheet .word")
    return 1000 * (time.perf_counter() - begun)


def choosing(page: Page, word: int) -> float:
    page.locator(".sheet .word").nth(word).click()
    page.wait_for_selector(".options button")
    milliseconds: float = page.evaluate(CHOOSE)
    page.get_by_role("button", name="The model’s own").click()
    page.wait_for_selector(".given", state="detached")
    return milliseconds


def summary(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "p50": round(statistics.median(ordered), 1),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
        "count": len(ordered),
    }


def measure(run: Path) -> dict[str, Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        started = [(*opens(browser, run), bare_import()) for _ in range(STARTS)]
        typed, chosen = [], []
        with served(run) as port:
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{port}/#/translate")
            for sentence in SENTENCES:
                typed.append(typing(page, sentence))
                words = page.locator(".sheet .word").count()
                chosen += [choosing(page, word) for word in range(min(3, words))]
        browser.close()
    return {
        **{
            name: [round(one, 2) for one in seconds]
            for name, seconds in zip(OPENING, zip(*started, strict=True), strict=True)
        },
        "typing_ms": summary(typed),
        "choosing_ms": summary(chosen),
    }


def table(found: dict[str, Any]) -> str:
    facts = found["about"]
    typed, chosen = (found[key] for key in ("typing_ms", "choosing_ms"))
    first, whole, bare = (found[key] for key in OPENING)
    return f"""# The page, measured

Written by `{facts["command"]}` ({facts["date"]}) in a browser: {facts["machine"]}, torch {facts["torch"]}; the load
of the machine before was {found["load_before"]}. Run: {found["run"]}.

| from | to | half of the times at most | 95 of 100 | aim |
|---|---|---:|---:|---:|
| the command | the first words of a translation on the page | {statistics.median(first):.1f} s | {max(first):.1f} s at most of {len(first)} starts | 5 s |
| the command | all of the translation, how sure it is, and others | {statistics.median(whole):.1f} s | {max(whole):.1f} s at most | |
| `python -c "import torch"` | its end, in turn with the starts above | {statistics.median(bare):.1f} s | {max(bare):.1f} s at most | |
| the choice of another token | the words that follow | {chosen["p50"]:.0f} ms | {chosen["p95"]:.0f} ms | 300 ms |
| the last letter typed | a translation, a pause of 160 ms included | {typed["p50"]:.0f} ms | {typed["p95"]:.0f} ms | |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    run = parser.parse_args().run
    load = round(os.getloadavg()[0], 1)
    facts = {**about(0), "command": f"python -m bench.page_speed {run}"}
    found = {**measure(run), "run": run.name, "load_before": load, "about": facts}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    RESULTS.with_suffix(".md").write_text(table(found), encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
