"""Text from users and models never runs as script, and the page loads nothing from other servers."""

import re
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Route, expect

from support.browsing import VIEW_LINKS, Visitor
from support.payloads import payloads
from support.trials import IS_CAMPAIGN, count_trials, save_results

STATIC = Path(__file__).parents[2] / "src" / "seqloom" / "serving" / "static"
COMPONENTS = STATIC.parents[1] / "viz" / "components"
PAYLOAD_COUNT = count_trials(20, 120)


@pytest.mark.slow
def test_typed_text_never_runs(visitor: Visitor) -> None:
    """In every field and in links. The `visitor` fixture fails if a script runs."""
    scripts = payloads(PAYLOAD_COUNT)
    all_scripts = " ".join(scripts)[:2000]
    for link in VIEW_LINKS.values():
        page = visitor.open(link)
        visitor.settle()
        for text in (all_scripts, *scripts[20::20]):
            for field in page.locator("main textarea, main input[type=text]").all():
                field.fill(text)
            page.wait_for_timeout(200)
            visitor.settle()
    for view in VIEW_LINKS:
        names = ("text", "run", "target", "begin", "with", "output", "rows", "claim", "head")
        visitor.open(f"#/{view}?{urlencode(dict.fromkeys(names, scripts[0]))}")
        visitor.settle()
    for script in scripts:
        visitor.open(f"#/translate?{urlencode({'text': script})}")
        visitor.settle()
    visitor.check()
    save_results("payloads.typed", typed_scripts=len(scripts), executed=0)


def replace_strings(content: Any, script: str) -> Any:
    """Replace every string of a response by a script, except names that the page relies on."""
    kept = {"name", "kind", "run", "fate", "state", "engine", "route", "version", "form"}
    match content:
        case dict():
            return {
                key: value if key in kept else replace_strings(value, script)
                for key, value in content.items()
            }
        case list():
            return [replace_strings(item, script) for item in content]
        case str():
            return script
        case _:
            return content


@pytest.mark.slow
def test_server_responses_never_run(visitor: Visitor) -> None:
    """Tokens, texts, formulas and reports can contain any string."""
    scripts, used = payloads(PAYLOAD_COUNT), count()

    def inject(route: Route) -> None:
        response = route.fetch()
        if response.headers["content-type"] != "application/json":
            route.fulfill(response=response)
            return
        route.fulfill(
            response=response,
            json=replace_strings(response.json(), scripts[next(used) % len(scripts)]),
        )

    visitor.replace_answers(re.compile("/api/(?!runs|trainings)"), inject)
    for _ in range(count_trials(1, 12)):
        for view in ("translate", "attention", "search", "inside", "compare", "label", "lab"):
            page = visitor.open(VIEW_LINKS[view])
            expect(page.locator("main")).to_contain_text(
                re.compile("seen.ran|elsewhere.test", re.I)
            )
            visitor.check()
    injected = next(used)
    assert not IS_CAMPAIGN or injected >= len(scripts)
    save_results("payloads.responses", scripts_in_responses=min(injected, len(scripts)), executed=0)


def test_index_preloads_every_module() -> None:
    """Otherwise the browser would discover the modules one after the other."""
    index = (STATIC / "index.html").read_text(encoding="utf-8")
    preloaded = re.findall('rel="modulepreload" href="static/([^"]+)"', index)
    modules = [path for folder in ("shared", "views") for path in STATIC.glob(f"{folder}/*.js")]
    components = [path for path in COMPONENTS.glob("*.js") if not path.stem.endswith("-page")]
    assert preloaded == sorted(
        [
            *(path.relative_to(STATIC).as_posix() for path in modules),
            *(f"components/{path.name}" for path in components),
        ]
    )


def test_sources_parse_no_markup_and_name_no_other_server() -> None:
    paths = [path for root in (STATIC, COMPONENTS) for path in root.rglob("*") if path.is_file()]
    assert len(paths) > 30
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if path.suffix in (".js", ".html"):
            for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function",
                         ' style="', "onclick=", "DOMParser"):  # fmt: skip
                assert word not in text, f"{path.name}: {word}"
        urls = re.findall(r"https?://[^\s\"'`)]+", text)
        assert not [url for url in urls if "www.w3.org" not in url], path.name
