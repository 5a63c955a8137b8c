"""tools/campaign.py: the page with the results of the reliability tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import store
from support.trials import save_results
from tools import campaign


def part(commit: str = "0123abcd", **results: Any) -> dict[str, Any]:
    facts = {"version": "1.0", "machine": "CPU", "torch": "2.0", "date": "2026-01-02"}
    return {"results": results, "measured_with": {**facts, "commit": commit}}


def test_counts_of_parts_are_added_and_times_are_maxima() -> None:
    parts = [
        {"kills": 1000, "slowest_seconds": 1.5, "statuses": {"200": 2}},
        {"kills": 234, "slowest_seconds": 0.5, "statuses": {"200": 1, "503": 4}, "lost": 0},
    ]
    joined = campaign.join_results(parts)
    assert campaign.format_results(joined) == (
        "kills 1,234; slowest seconds 1.5; statuses: 3 × 200, 4 × 503; lost 0"
    )


def test_the_page_names_version_machine_commits_and_dates() -> None:
    page = campaign.format_page({"kills": [part(kills=2), part("f00dfeed", kills=3)]})
    assert "version 1.0; machine CPU; torch 2.0." in page
    assert page.endswith("| kills 5 | 0123abcd, f00dfeed | 2026-01-02 |\n")


def test_results_are_saved_with_what_they_belong_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_FIGURES", str(tmp_path))
    save_results("kills.training", kills=3)
    content = json.loads((tmp_path / "kills.training.json").read_bytes())
    assert content["results"] == {"kills": 3}
    assert content["measured_with"].keys() == part()["measured_with"].keys()


def test_every_stored_result_has_a_row() -> None:
    names = {name.partition(".")[0] for name in store.read("campaign")}
    assert names <= campaign.TESTS.keys()


def test_new_results_replace_stored_ones(tmp_path: Path) -> None:
    (tmp_path / "kills.pack.json").write_text(json.dumps(part(kills=77)), encoding="utf-8")
    results = campaign.collect(tmp_path)
    assert part(kills=77) in campaign.parts_of("kills", results)
    assert len(results) == len(store.read("campaign"))


def test_the_stored_page_shows_the_stored_results() -> None:
    results = store.read("campaign")
    rows = {name: parts for name in campaign.TESTS if (parts := campaign.parts_of(name, results))}
    assert campaign.PAGE.read_text(encoding="utf-8") == campaign.format_page(rows)
