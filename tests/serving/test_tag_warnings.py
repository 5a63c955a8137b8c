"""The HTTP API and the page warn if a text has no tag, but the task is chosen by a tag."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from support.browsing import visit
from support.server_process import ServerProcess, start_server
from support.tagged_runs import ADVICE, train_tagged_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tagged_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = start_server([train_tagged_run(tmp_path_factory.mktemp("runs") / "case")])
    yield server
    assert server.stop() == 0


def test_translations_of_untagged_texts_have_warnings(tagged_server: ServerProcess) -> None:
    response = tagged_server.post_json("/api/translate", texts=["ab"])
    [warning] = [each for each in response["warnings"] if "tags" in each]
    assert warning.startswith(f"the text has {ADVICE}")
    tagged = tagged_server.post_json("/api/translate", texts=["<U> ab"])
    assert not [each for each in tagged["warnings"] if "tags" in each]


def test_the_warning_counts_texts(tagged_server: ServerProcess) -> None:
    """The tag of a text is repeated for each of its sentences."""
    texts = ["<U> Ab. Ba.", "ab"]
    response = tagged_server.post_json("/api/translate", texts=texts, split=True)
    [warning] = [each for each in response["warnings"] if "tags" in each]
    assert warning.startswith(f"1 of 2 texts (text 2) has {ADVICE}")


def test_every_route_about_a_source_text_warns(tagged_server: ServerProcess) -> None:
    requests: dict[str, dict[str, object]] = {
        "/api/attention": {},
        "/api/search": {},
        "/api/search/tree": {},
        "/api/explain": {"step": 1},
    }
    for path, fields in requests.items():
        assert ADVICE in tagged_server.post_json(path, text="ab", **fields)["warnings"][0], path
        assert tagged_server.post_json(path, text="<L> ab", **fields)["warnings"] == [], path
    scored = tagged_server.post_json("/api/score", sources=["ab", "<U> ab"], targets=["a", "b"])
    assert scored["warnings"][0].startswith("1 of 2 sources (source 1) has")
    stream = tagged_server.post("/api/translate/stream", texts=["ab"]).text
    start = next(line for line in stream.splitlines() if line.startswith("data: "))
    assert ADVICE in json.loads(start.removeprefix("data: "))["warnings"][0]


def test_runs_without_tags_have_no_warnings(server: ServerProcess) -> None:
    response = server.post_json("/api/translate", run="reverser", texts=["abcd"])
    assert response["warnings"] == []
    assert server.post_json("/api/label", texts=["hund"])["warnings"] == []


def test_multilingual_runs_still_require_a_target(server: ServerProcess) -> None:
    status, kind, message = server.post_error("/api/translate", run="polyglot", texts=["big man"])
    assert (status, kind) == (422, "invalid")
    assert "choose the target language" in message


def test_the_page_shows_the_warning(browser: Browser, tagged_server: ServerProcess) -> None:
    context, visitor = visit(browser, tagged_server)
    for view in ("attention", "search", "inside", "translate"):
        page = visitor.open(f"#/{view}?text=ab")
        expect(page.locator(".warning")).to_contain_text(ADVICE)
        page.get_by_label("Source text").fill("<U> ab")
        expect(page.locator(".warning", has_text=ADVICE)).to_have_count(0)
    page = visitor.open("#/translate?text=ab&run=case")
    expect(page.locator(".warning")).to_contain_text(ADVICE)
    visitor.settle()
    assert not visitor.axe()
    visitor.check()
    context.close()
