"""Exported pages: one file each, made of the components of the web page, safe for any text."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from seqloom.analysis import search_example
from seqloom.analysis.comparison import OutputPair, RunComparison
from seqloom.inference.prediction import OutputAttention, Prediction
from seqloom.metrics.score import Score
from seqloom.metrics.subword_merging import AttentionMap
from seqloom.viz import pages
from seqloom.viz.pages import (
    AttentionCard,
    bundle_modules,
    save_attention_page,
    save_comparison_page,
    save_search_page,
)
from support.browsing import accessibility_problems

UNSAFE_TOKENS = ("</script><b>", "שלום", 'a"b&c')


def example_maps() -> tuple[AttentionMap, AttentionMap]:
    """The mean map (T, S) and the maps of all heads (T, L, H, S)."""
    heads = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 2, 4))
    labels = (("I", "like"), UNSAFE_TOKENS)
    return AttentionMap(*labels, heads.mean(axis=(1, 2))), AttentionMap(*labels, heads)


def save_example_attention(path: Path) -> None:
    card = AttentionCard("1", "I like <b>", "score -0.1", "mean of <all> heads", *example_maps())
    save_attention_page(path, "Attention of <run>", [card, AttentionCard("2")])


def save_example_comparison(path: Path) -> None:
    first = Prediction(
        "a </script> house.",
        -0.5,
        ("▁a", "▁</script>", "▁house", ".", "</s>"),
        ("▁ein", "▁Haus", "</s>"),
        (-0.1, float("-inf"), -0.2, -0.1, -0.1),
        attention_values=OutputAttention(torch.full((5, 3), 1 / 3)),
    )
    second = Prediction("a house", -0.7, ("▁a", "▁house"), ("▁ein",), (-0.1, -2.0))
    pair = OutputPair(1, "ein <Haus>", ("a & b",), (first, second), (50.0, 60.0), 10.0)
    scores = ((Score("BLEU", 1.0, "", True),), (Score("BLEU", 2.0, "", True),))
    save_comparison_page(path, RunComparison(("run <1>", "run 2"), (pair,), scores), 5)


PAGES: dict[str, Callable[[Path], None]] = {
    "attention": save_example_attention,
    "search": lambda path: save_search_page(path, search_example()),
    "comparison": save_example_comparison,
}


@pytest.fixture(params=PAGES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of each kind of page."""
    path = tmp_path / f"{request.param}.html"
    PAGES[request.param](path)
    return path


def read_data(path: Path) -> Any:
    (data,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8")
    )
    return json.loads(data)


def test_page_references_no_other_file(path: Path) -> None:
    page = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(
        r"""https?://|\ssrc=|<link|@import|url\((?!"data:)|fetch\(|^\s*import\s""",
        page,
        re.MULTILINE,
    )


def test_policy_allows_the_script_of_the_page_and_nothing_else(path: Path) -> None:
    page = path.read_text("utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; " in page
    assert f"script-src 'sha256-{digest}'; base-uri 'none'" in page


def test_texts_are_escaped(path: Path) -> None:
    page = path.read_text("utf-8")
    assert page.count("</script>") == 2
    assert "<b>" not in page
    assert json.dumps(read_data(path), allow_nan=False)


def test_page_has_light_and_dark_colours(path: Path) -> None:
    assert "color-scheme: light dark" in path.read_text("utf-8")


def test_attention_page_contains_the_weights_of_every_head(tmp_path: Path) -> None:
    save_example_attention(tmp_path / "a.html")
    first, blank = read_data(tmp_path / "a.html")["cards"]
    heads = np.array(first["attention"]["heads"])
    assert heads.shape == (2, 4, 2, 3)  # layers, heads, outputs, sources
    np.testing.assert_allclose(heads.transpose(2, 0, 1, 3), example_maps()[1].weights, atol=1e-4)
    assert blank["attention"] is None


def test_tables_hold_the_weights_without_javascript(tmp_path: Path) -> None:
    save_example_attention(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    (text,) = re.findall(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
    cells = [int(cell) for cell in re.findall(r"<td[^>]*>(\d+)</td>", text)]
    assert cells == [round(100 * weight) for weight in example_maps()[0].weights.flatten()]


def test_each_module_is_bundled_once_after_its_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {
        "dom": "const secret = 1;\nexport const make = 2;\nexport async function* read() {}\n",
        "map": 'import { make } from "./dom.js";\nexport class Map {}\n',
        "entry": 'import { Map } from "./map.js";\nimport { make, read } from "./dom.js";\nread();\n',
    }
    for name, source in modules.items():
        (tmp_path / f"{name}.js").write_text(source, encoding="utf-8")
    monkeypatch.setattr(pages, "COMPONENTS", tmp_path)
    script = bundle_modules("entry")
    names = re.findall(r"^const (module_\w+) =", script, re.MULTILINE)
    assert names == ["module_dom", "module_map", "module_entry"]
    assert "return { make, read };" in script
    assert "secret }" not in script
    assert "const { Map } = module_map;" in script


@pytest.mark.parametrize(
    "source",
    [
        'import { absent } from "./dom.js";\n',
        'import * as dom from "./dom.js";\n',
        "export default 1;\n",
    ],
)
def test_modules_that_cannot_be_bundled_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    (tmp_path / "dom.js").write_text("export const make = 2;\n", encoding="utf-8")
    (tmp_path / "entry.js").write_text(source, encoding="utf-8")
    monkeypatch.setattr(pages, "COMPONENTS", tmp_path)
    with pytest.raises(AssertionError, match="entry"):
        bundle_modules("entry")


def open_page(browser: Browser, path: Path, colours: Any = "light") -> tuple[Page, list[str]]:
    """Open a page from its file. Returns the page and a list of its errors and requests."""
    context = browser.new_context(color_scheme=colours, reduced_motion="reduce")
    page, problems = context.new_page(), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text))
    page.on("request", lambda request: problems.append(request.url))
    page.goto(path.as_uri())
    problems.remove(path.as_uri())
    return page, problems


@pytest.mark.slow
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_page_works_from_its_file_without_errors(
    browser: Browser, path: Path, colours: str
) -> None:
    page, problems = open_page(browser, path, colours)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("main svg").first).to_be_visible()
    assert not [each for each in problems if not each.startswith(("data:", "blob:"))]
    assert not accessibility_problems(page)
    page.context.close()


@pytest.mark.slow
def test_attention_page_shows_heads_and_lines(browser: Browser, tmp_path: Path) -> None:
    save_example_attention(tmp_path / "a.html")
    page, _ = open_page(browser, tmp_path / "a.html")
    expect(page.locator("section.card")).to_have_count(2)
    expect(page.locator(".attention-map h2, .attention-maps h2")).to_have_text(
        "mean of <all> heads"
    )
    page.get_by_role("button", name="Layer 2, head 3").click()
    page.locator("summary").click()
    weights = example_maps()[1].weights[0, 1, 2]
    row = page.locator("details tbody tr").first.locator("td")
    expect(row).to_have_text([f"{weight:.2f}" for weight in weights])
    page.get_by_text("Lines", exact=True).click()
    expect(page.locator(".attention-arcs path").first).to_be_attached()
    page.context.close()


@pytest.mark.slow
def test_search_page_plays_the_steps(browser: Browser, tmp_path: Path) -> None:
    save_search_page(tmp_path / "a.html", search_example())
    page, _ = open_page(browser, tmp_path / "a.html")
    steps = len(search_example().record.steps)
    expect(page.locator(".step-label")).to_have_text(f"step {steps} of {steps}")
    assert page.locator(".outputs tbody tr").count() == len(search_example().outputs)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".step-label")).to_have_text(f"step {steps - 1} of {steps}")
    page.keyboard.press("Home")
    expect(page.locator(".step-label")).to_have_text("before step 1")
    assert page.locator(".tree [role='button']").count() == 0  # there is no server to decode
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.context.close()


@pytest.mark.slow
def test_comparison_page_marks_the_words_that_differ(browser: Browser, tmp_path: Path) -> None:
    save_example_comparison(tmp_path / "a.html")
    page, _ = open_page(browser, tmp_path / "a.html")
    expect(page.locator(".word.differs")).to_have_text(["</script>"])
    expect(page.get_by_text("This run has no attention")).to_be_visible()
    expect(page.locator(".map-scroll")).to_have_count(1)
    page.context.close()
