"""Take the screenshots of docs/page.md from a trained translation run.

python tools/screenshots.py runs/demo docs/pictures

Needs playwright and Chromium. Set CHROMIUM to its path if it is not on the PATH.
"""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

SENTENCE = "Ich habe ihn gestern gesehen."
SHORT_SENTENCE = "Das gefällt mir."
PALETTE_SIZE = 255
PROGRAM = "from seqloom.cli.main import run; run()"


@dataclass(frozen=True)
class Screenshot:
    """One screenshot of a view.

    Attributes:
        settings: settings of the view, as in its link.
        ready: CSS selector of an element that appears when the view has its result.
        prepare: actions on the page before the screenshot is taken.
        width: width of the window in pixels.
        height: height of the window in pixels.
    """

    name: str
    view: str
    settings: dict[str, str]
    ready: str
    prepare: Callable[[Page], None] = lambda page: None
    dark: bool = False
    width: int = 1280
    height: int = 800


def open_alternatives(page: Page) -> None:
    page.locator(".translation-output .word").nth(1).click()
    page.wait_for_selector(".alternatives")


def hover_over_word(page: Page) -> None:
    page.wait_for_selector(".translation-output .word[title*=aligned]")
    page.locator(".translation-output .word").nth(1).hover()


def scroll_to_tree(page: Page) -> None:
    page.locator(".playback").evaluate(
        "element => { element.style.scrollMarginTop = '1rem'; element.scrollIntoView(); }"
    )


SCREENSHOTS = (
    Screenshot("page-translate", "translate", {"text": SENTENCE}, ".translation-output .word", open_alternatives, height=720),
    Screenshot("page-attention", "attention", {"text": SENTENCE}, ".map-scroll svg", height=1060),
    Screenshot("page-search", "search", {"text": SHORT_SENTENCE, "beam": "3"}, ".tree .wins .token", scroll_to_tree, height=940),
    Screenshot("page-inside", "inside", {"text": SENTENCE, "step": "2"}, ".attention-diagram", dark=True, height=780),
    Screenshot("page-lecture", "inside", {"of": "lecture", "score": "nonlinear"}, ".attention-diagram", height=1150),
    Screenshot("page-lookup", "inside", {"of": "lookup", "gamma": "0.5"}, ".lookup-plot", height=860),
    Screenshot("page-train", "train", {}, ".figure-chart", height=900),
    Screenshot("page-narrow", "translate", {"text": SENTENCE}, ".translation-output", hover_over_word, True, 390, 760),
)  # fmt: skip


@contextmanager
def serve(run_folder: str) -> Iterator[str]:
    """Serve a run on a free port, and return the URL."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", run_folder, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if match := re.search(r"(http://\S+?:\d+)", line):
                yield match[1]
                return
        raise SystemExit(f"{run_folder}: the server did not start")
    finally:
        process.terminate()
        process.wait()


def take_screenshot(browser: Browser, url: str, screenshot: Screenshot, path: Path) -> None:
    context = browser.new_context(
        viewport={"width": screenshot.width, "height": screenshot.height},
        color_scheme="dark" if screenshot.dark else "light",
        device_scale_factor=1.5,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{url}/#/{screenshot.view}?{urlencode(screenshot.settings)}")
    page.wait_for_selector(screenshot.ready)
    page.wait_for_load_state("networkidle")
    screenshot.prepare(page)
    page.wait_for_timeout(300)  # let the browser finish drawing
    image = Image.open(io.BytesIO(page.screenshot()))
    # The page has few colours. A palette makes the file a third as large.
    image.convert("RGB").quantize(PALETTE_SIZE).save(path, optimize=True)
    context.close()


def chromium() -> str:
    """Return the path of Chromium, or exit with a message."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    program = os.environ.get("CHROMIUM") or next((path for path in found if path), None)
    if program is None:
        raise SystemExit("Chromium is not installed. Install it with: apt-get install chromium")
    return program


def main(run_folder: str, output_folder: str) -> None:
    Path(output_folder).mkdir(parents=True, exist_ok=True)
    with serve(run_folder) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for screenshot in SCREENSHOTS:
            path = Path(output_folder) / f"{screenshot.name}.png"
            take_screenshot(browser, url, screenshot, path)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
