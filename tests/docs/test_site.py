"""The built documentation site works from files: links, search, themes and accessibility."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browsing import accessibility_problems
from tools.site.check_links import find_problems
from tools.site.links import ROOT

pytestmark = pytest.mark.long

PAGES = (
    "index.html",
    "first-translator.html",
    "lab.html",
    "figures.html",
    "course/03-attention.html",
    "course/04-beam-search.html",
    "generated/commands.html",
    "generated/recipe/training.html",
    "generated/api/seqloom.nn.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors. The executed notebooks stay in the cache."""
    pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-d", str(folder / "trees")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(folder / "html")],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("requestfailed", lambda failed: errors.append(failed.url))
    yield page
    context.close()
    assert not errors


def test_every_link_has_a_target_and_nothing_is_loaded_from_other_servers(site: Path) -> None:
    assert find_problems(site) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible(site: Path, page: Page, name: str) -> None:
    page.goto((site / name).as_uri())
    assert accessibility_problems(page) == []


def test_search_finds_a_setting(site: Path, page: Page) -> None:
    page.goto(f"{(site / 'search.html').as_uri()}?q=label_smoothing")
    expect(page.locator("#search-results li a").first).to_be_visible()
    assert "training" in page.locator("#search-results").inner_text()
