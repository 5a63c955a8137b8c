"""Fixtures that open the web page in Chromium and report script errors and security violations."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from re import Pattern
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Dialog,
    Page,
    Route,
    expect,
    sync_playwright,
)

from seqloom.lab.reporting.report_files import write_report
from seqloom.lab.running.runner import Experiment, list_jobs, run_jobs
from support.server_process import ServerProcess

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
VIEWS = ("translate", "complete", "caption", "forecast", "label", "attention", "search", "inside",
         "compare", "train", "lab")  # fmt: skip
VIEW_LINKS = {
    "translate": "#/translate?run=reverser&text=abcd",
    "complete": "#/complete?text=ab&seed=3&length=12",
    "caption": "#/caption",
    "forecast": "#/forecast",
    "label": "#/label?text=hund",
    "attention": "#/attention?run=transformer&text=abcd",
    "search": "#/search?run=reverser&text=abcd",
    "inside": "#/inside?run=reverser&text=abcd",
    "compare": "#/compare?run=reverser&with=transformer&text=abcd",
    "train": "#/train?training=reverser",
    "lab": "#/lab?claim=scale",
}
"""A link for each view that shows a result."""
SEEDS = range(1, 2)
TIMEOUT = 30_000
"""Milliseconds. Generous, because the machine may run other tests at the same time."""
REPORTED_IMPACTS = ("serious", "critical")
RECORD_VIOLATIONS = """
window.seen = { violations: [], ran: 0 };
document.addEventListener("securitypolicyviolation", (event) =>
  window.seen.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""
FOLLOW_LINK = """link => {
  history.pushState(null, "", link);
  dispatchEvent(new HashChangeEvent("hashchange"));
}"""
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")

expect.set_options(timeout=TIMEOUT)


def chromium() -> str | None:
    """The path of Chromium or Chrome; the variable CHROMIUM overrides it. None if there is none."""
    found = (shutil.which(name) for name in CHROMIUM_NAMES)
    return os.environ.get("CHROMIUM") or next((path for path in found if path), None)


@dataclass
class Visitor:
    """A browser page and the errors that occurred on it.

    Attributes:
        errors: script errors, dialogs, and requests to other servers.
        has_replaced_answers: whether the page may show answers that a test has replaced.
    """

    server: ServerProcess
    page: Page
    errors: list[str] = field(default_factory=list)
    has_replaced_answers: bool = False

    def replace_answers(
        self, url: str | Pattern[str], handler: Callable[[Route], Any], times: int | None = None
    ) -> None:
        """Call `handler` for requests to matching URLs until the end of the test."""
        self.has_replaced_answers = True
        self.page.route(url, handler, times=times)

    def load(self, link: str = "") -> Page:
        """Load the page anew at a link."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.server.url}/{link}")
        self.page.wait_for_selector("main h1, main .error, dialog")
        return self.page

    def open(self, link: str) -> Page:
        """Go to a link without reloading the page, which is faster than `load`."""
        if self.page.url.partition("#")[0] != f"{self.server.url}/":
            return self.load(link)
        self.page.evaluate(FOLLOW_LINK, link)
        return self.page

    def settle(self) -> None:
        """Wait until no request is pending."""
        expect(self.page.locator("[aria-busy], main .loading")).to_have_count(0)

    def check(self) -> None:
        """Assert that no error or violation has occurred so far."""
        seen = self.page.evaluate("window.seen ?? { violations: [], ran: 0 }")
        assert not seen["violations"]
        assert not seen["ran"], "an injected script has run"
        assert not self.errors

    def dismiss(self, dialog: Dialog) -> None:
        """Record a browser dialog. The page opens none, so an injected script must have run."""
        self.errors.append(dialog.message)
        dialog.dismiss()

    def axe(self, *rules: str) -> list[str]:
        """Return the serious accessibility problems that axe-core finds, by all or some rules."""
        return accessibility_problems(self.page, *rules)


def accessibility_problems(page: Page, *rules: str) -> list[str]:
    """Return the serious problems that axe-core finds on a page, by all or some rules."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    # All style sheets are of this origin, so axe has nothing to preload.
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = list(rules)
    result = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]} "
        f"{node['failureSummary'][:300]}"
        for violation in result["violations"]
        if violation["impact"] in REPORTED_IMPACTS
        for node in violation["nodes"]
    ]


@contextmanager
def open_browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        # Chromium refuses to run its sandbox as root.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def visit(
    browser: Browser, server: ServerProcess, **options: Any
) -> tuple[BrowserContext, Visitor]:
    """Return a visitor in a new browser context."""
    defaults: dict[str, Any] = {
        "viewport": {"width": 1280, "height": 900},
        "reduced_motion": "reduce",
    }
    context = browser.new_context(**{**defaults, **options})
    context.set_default_timeout(TIMEOUT)
    page = context.new_page()
    visitor = Visitor(server, page)
    page.add_init_script(RECORD_VIOLATIONS)
    page.on("pageerror", lambda error: visitor.errors.append(f"error: {error}"))
    page.on("dialog", visitor.dismiss)

    def block(route: Route) -> None:
        visitor.errors.append(f"request to {route.request.url}")
        route.abort()

    context.route(lambda url: not url.startswith((server.url, "data:", "blob:")), block)
    return context, visitor


@pytest.fixture(scope="session")
def desk(browser: Browser, server: ServerProcess, reports: Path) -> Iterator[Visitor]:
    """A page that all tests share."""
    context, visitor = visit(browser, server)
    yield visitor
    context.close()


@pytest.fixture
def visitor(desk: Visitor) -> Iterator[Visitor]:
    """The shared page; fails the test if an error occurs on it."""
    yield desk
    desk.check()
    # A handler may still be answering a request that the page sent at the end of the test.
    desk.page.unroute_all(behavior="wait")
    if desk.has_replaced_answers:
        # The page keeps answers, such as the list of runs, until it is loaded anew.
        desk.page.goto("about:blank")
        desk.has_replaced_answers = False


@pytest.fixture(scope="session")
def reports(runs: dict[str, Path]) -> Path:
    """A lab report beside the runs."""
    place = Experiment(runs["reverser"].parent / "lab", "scale", "tiny")
    assert not run_jobs(list_jobs(place, SEEDS), 1, lambda *_: None)
    write_report(place, SEEDS)
    return place.folder
