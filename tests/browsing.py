"""A browser before the page, and a visitor who notices everything that must not happen."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
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

from calling_server import Server
from seqloom.lab.laboratory import Place, carry_out, jobs_of
from seqloom.lab.writing import write_report

PLACES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
VIEWS = ("translate", "complete", "caption", "forecast", "label", "attention", "search", "inside",
         "compare", "train", "lab")  # fmt: skip
SEEDS = range(1, 2)
PATIENCE = 30_000
"""Milliseconds: a machine that does much else is slow, not wrong."""
SERIOUS = ("serious", "critical")
WATCH = """
window.seen = { violations: [], ran: 0 };
document.addEventListener("securitypolicyviolation", (event) =>
  window.seen.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""


GO = """link => {
  history.pushState(null, "", link);
  dispatchEvent(new HashChangeEvent("hashchange"));
}"""


expect.set_options(timeout=PATIENCE)


def chromium() -> str | None:
    """Debian's, or another of its family."""
    found = (shutil.which(name) for name in PLACES)
    return os.environ.get("CHROMIUM") or next((path for path in found if path), None)


@dataclass
class Visitor:
    """A page, and what went wrong on it.

    wrong: errors of scripts, broken rules of safety, requests that went elsewhere
    """

    server: Server
    page: Page
    wrong: list[str] = field(default_factory=list)

    def come(self, link: str = "") -> Page:
        """To a view, by its link, from elsewhere."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.server.url}/{link}")
        self.page.wait_for_selector("main h1, main .wrong, dialog")
        return self.page

    def open(self, link: str) -> Page:
        """A view, by its link. The page stays; to load it again costs more than all else."""
        if not self.page.url.startswith(self.server.url):
            return self.come(link)
        self.page.evaluate(GO, link)
        return self.page

    def settle(self) -> None:
        """Wait until nothing is asked for any more."""
        expect(self.page.locator("[aria-busy], main .waiting")).to_have_count(0)

    def check(self) -> None:
        """Nothing has gone wrong so far."""
        seen = self.page.evaluate("window.seen ?? { violations: [], ran: 0 }")
        assert not seen["violations"]
        assert not seen["ran"], "a script that somebody typed has run"
        assert not self.wrong

    def refuse(self, dialog: Dialog) -> None:
        """The page has none of these: a script has run that somebody typed."""
        self.wrong.append(dialog.message)
        dialog.dismiss()

    def axe(self, *rules: str) -> list[str]:
        """What axe-core finds that would keep somebody out, by all of its rules or some."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        # All styles are of this origin: there is nothing to fetch before it looks.
        options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
        if rules:
            options["runOnly"] = list(rules)
        found = self.page.evaluate("options => axe.run(document, options)", options)
        return [
            f"{one['id']} ({one['impact']}): {node['html'][:160]} {node['failureSummary'][:300]}"
            for one in found["violations"]
            if one["impact"] in SERIOUS
            for node in one["nodes"]
        ]


AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("there is no chromium; make test installs it (apt-get install chromium)")
    with sync_playwright() as playwright:
        # Tests may be run by root, who gets no sandbox.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def visit(browser: Browser, server: Server, **how: Any) -> tuple[BrowserContext, Visitor]:
    """A visitor in a browser of their own."""
    usual: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
    context = browser.new_context(**{**usual, **how})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    visitor = Visitor(server, page)
    page.add_init_script(WATCH)
    page.on("pageerror", lambda error: visitor.wrong.append(f"error: {error}"))
    page.on("dialog", visitor.refuse)

    def elsewhere(route: Route) -> None:
        visitor.wrong.append(f"asked for {route.request.url}")
        route.abort()

    context.route(lambda url: not url.startswith((server.url, "data:", "blob:")), elsewhere)
    return context, visitor


@pytest.fixture(scope="session")
def desk(browser: Browser, server: Server, reports: Path) -> Iterator[Visitor]:
    """A page that stays open from test to test."""
    context, visitor = visit(browser, server)
    yield visitor
    context.close()


@pytest.fixture
def visitor(desk: Visitor) -> Iterator[Visitor]:
    yield desk
    desk.check()
    desk.page.unroute_all()


@pytest.fixture(scope="session")
def reports(runs: dict[str, Path]) -> Path:
    """A report of the lab, beside the runs."""
    place = Place(runs["reverser"].parent / "lab", "scale", "tiny")
    assert not carry_out(jobs_of(place, SEEDS), 1, lambda *_: None)
    write_report(place, SEEDS)
    return place.folder
