"""Take the README's pictures of the page from a trained run that translates.

python tools/screenshots.py runs/demo docs/pictures

Needs playwright and a chromium; CHROMIUM says where one is that has another name.
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
SHORT = "Das gefällt mir."
COLOURS = 255
PROGRAM = "from seqloom.cli.main import run; run()"


@dataclass(frozen=True)
class Shot:
    """One picture: a view, what it shows, and what is done there before it is taken.

    height: of the window, in pixels
    """

    name: str
    view: str
    settings: dict[str, str]
    ready: str
    act: Callable[[Page], None] = lambda page: None
    dark: bool = False
    width: int = 1280
    height: int = 800


def choose(page: Page) -> None:
    """Ask what else could stand there, and point at a word."""
    page.locator(".sheet .word").nth(1).click()
    page.wait_for_selector(".instead")


def point(page: Page) -> None:
    page.wait_for_selector(".sheet .word[title*=from]")
    page.locator(".sheet .word").nth(1).hover()


SHOTS = (
    Shot("page-translate", "translate", {"text": SENTENCE}, ".sheet .word", choose, height=720),
    Shot("page-attention", "attention", {"text": SENTENCE}, ".board svg", height=860),
    Shot("page-search", "search", {"text": SHORT, "beam": "3"}, ".tree .wins .token", height=940),
    Shot("page-inside", "inside", {"text": SENTENCE, "step": "2"}, ".look", dark=True, height=780),
    Shot("page-lecture", "inside", {"of": "lecture", "score": "nonlinear"}, ".look", height=740),
    Shot("page-train", "train", {}, ".figure-chart", height=900),
    Shot("page-narrow", "translate", {"text": SENTENCE}, ".sheet", point, True, 390, 760),
)  # fmt: skip


@contextmanager
def served(run: str) -> Iterator[str]:
    """The address of a service of this run."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", run, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.match("open (http://[^ ]+)", line):
                yield found[1]
                return
        raise SystemExit(f"{run}: the service did not open")
    finally:
        process.terminate()
        process.wait()


def take(browser: Browser, url: str, shot: Shot, path: Path) -> None:
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme="dark" if shot.dark else "light",
        device_scale_factor=1.5,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{url}/#/{shot.view}?{urlencode(shot.settings)}")
    page.wait_for_selector(shot.ready)
    page.wait_for_load_state("networkidle")
    shot.act(page)
    page.wait_for_timeout(300)  # what is being drawn
    picture = Image.open(io.BytesIO(page.screenshot()))
    # Few colours are on the page; with a palette a picture is a third as large.
    picture.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    context.close()


def chromium() -> str:
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    program = os.environ.get("CHROMIUM") or next((path for path in found if path), None)
    if program is None:
        raise SystemExit("there is no chromium; install it (apt-get install chromium)")
    return program


def main(run: str, folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    with served(run) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for shot in SHOTS:
            take(browser, url, shot, Path(folder) / f"{shot.name}.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
