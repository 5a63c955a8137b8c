"""docs/lab.md names every claim, and says of each how it stands."""

import json
from pathlib import Path

import pytest

from bench import lab
from bench.lab_reasons import REASONS
from seqloom.lab.registry import claim_names
from seqloom.lab.reporting.files import write_report
from seqloom.lab.running.runner import Experiment, list_jobs, run_jobs


def test_the_page_has_every_claim_and_the_plots_of_those_that_were_run(tmp_path: Path) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    place = Experiment(out, "scale", "small")
    run_jobs(list_jobs(place, range(1, 4)), 1, lambda job, words, share: None)
    write_report(place, range(1, 4))
    lab.collect(out, docs / "results" / "lab")
    lab.write(docs)
    text = (docs / "lab.md").read_text(encoding="utf-8")
    assert "| [scale](#scale) | not yet run | **confirmed**, seeds 1 to 3 |" in text
    assert text.count("| not yet run | not yet run |") == len(claim_names()) - 1
    assert (
        (docs / "pictures" / "lab" / "scale-1.svg").read_text(encoding="utf-8").startswith("<svg")
    )


@pytest.mark.parametrize("name", claim_names())
def test_the_page_that_is_there_knows_every_claim(name: str) -> None:
    text = (lab.DOCS / "lab.md").read_text(encoding="utf-8")
    assert f"| [{name}](#{name}) |" in text, "run it, and take its report over"
    assert f"## {name}" in text


@pytest.mark.parametrize("name", claim_names())
def test_a_verdict_that_is_not_confirmed_in_every_size_comes_with_a_reason(name: str) -> None:
    reports = [
        json.loads((lab.DOCS / "results" / "lab" / size / f"{name}.json").read_text())
        for size in lab.SIZES
    ]
    states = {one["verdict"]["state"] for one in reports}
    assert states == {"confirmed"} or name in REASONS
