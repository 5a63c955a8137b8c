"""docs/lab.md contains every claim with its verdict."""

import json
from pathlib import Path

import pytest

from bench import lab
from bench.lab_reasons import REASONS
from seqloom.lab.registry import claim_names
from seqloom.lab.reporting.report_files import write_report
from seqloom.lab.running.runner import Experiment, list_jobs, run_jobs


@pytest.mark.slow
def test_the_page_lists_all_claims_and_draws_the_plots_of_measured_ones(tmp_path: Path) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    experiment = Experiment(out, "scale", "small")
    run_jobs(list_jobs(experiment, range(1, 4)), 1, lambda job, message, share: None)
    write_report(experiment, range(1, 4))
    lab.collect(out, docs / "results" / "lab")
    lab.write(docs)
    text = (docs / "lab.md").read_text(encoding="utf-8")
    assert "| [scale](#scale) | not yet run | **confirmed**, seeds 1 to 3 |" in text
    assert text.count("| not yet run | not yet run |") == len(claim_names()) - 1
    plot = docs / "pictures" / "lab" / "scale-1.svg"
    assert plot.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("name", claim_names())
def test_the_published_page_has_every_claim(name: str) -> None:
    text = (lab.DOCS / "lab.md").read_text(encoding="utf-8")
    assert f"| [{name}](#{name}) |" in text, "run the claim and collect its report"
    assert f"## {name}" in text


@pytest.mark.parametrize("name", claim_names())
def test_a_claim_that_is_not_confirmed_in_every_size_has_a_reason(name: str) -> None:
    paths = [lab.DOCS / "results" / "lab" / size / f"{name}.json" for size in lab.SIZES]
    reports = [json.loads(path.read_text()) for path in paths if path.exists()]
    states = {report["verdict"]["state"] for report in reports}
    assert states == {"confirmed"} or name in REASONS


def test_the_served_reports_are_the_published_ones() -> None:
    """If this fails, run `python -m bench.lab`."""
    served = lab.SERVED_REPORTS.read_text(encoding="utf-8")
    assert served == lab.served_reports(lab.DOCS / "results" / "lab")
    assert [report["claim"] for report in json.loads(served)] == list(claim_names())


def test_a_report_keeps_the_measurements_of_other_seeds() -> None:
    path = lab.DOCS / "results" / "lab" / "small" / "scale.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    shifted = [{**each, "seed": each["seed"] + 2} for each in content["measurements"]]
    newer = {**content, "seeds": [3, 4, 5], "measurements": shifted}
    merged = lab.with_other_seeds(newer, content)
    assert merged["seeds"] == [1, 2, 3, 4, 5]
    third = {
        each["condition"]: each["numbers"] for each in merged["measurements"] if each["seed"] == 3
    }
    assert third == {each["condition"]: each["numbers"] for each in shifted if each["seed"] == 3}
    other_settings = {**content, "settings": "Settings(width=1)"}
    assert lab.with_other_seeds(newer, other_settings) == newer
