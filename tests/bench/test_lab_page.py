"""docs/lab.md contains every claim with its verdict."""

import json
from argparse import Namespace
from pathlib import Path

import pytest

from bench import lab, store
from seqloom.lab.registry import claim_names
from seqloom.lab.reporting.report_files import write_report
from seqloom.lab.running.runner import Experiment, list_jobs, run_jobs

PAGE = (store.ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
RESULTS = store.read("lab")


@pytest.mark.slow
def test_reports_are_collected_and_their_charts_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = Experiment(tmp_path, "scale", "small")
    run_jobs(list_jobs(experiment, range(1, 4)), 1, lambda job, message, share: None)
    write_report(experiment, range(1, 4))
    (results,) = lab.measure(Namespace(reports=tmp_path, earlier=None))
    assert list(results) == ["small/scale"]
    text = lab.table(results)
    assert "| [scale](#scale) | not yet run | **confirmed**, seeds 1 to 3 |" in text
    assert text.count("| not yet run | not yet run |") == len(claim_names()) - 1
    assert "scale-1.svg" in lab.table(results, "numbers", "scale")
    monkeypatch.setattr(lab, "PICTURES", tmp_path / "pictures")
    monkeypatch.setattr(lab, "SERVED_REPORTS", tmp_path / "served.json")
    monkeypatch.setattr(store, "read", lambda name: results)
    lab.draw()
    plot = tmp_path / "pictures" / "scale-1.svg"
    assert plot.read_text(encoding="utf-8").startswith("<svg")
    (served,) = json.loads((tmp_path / "served.json").read_bytes())
    assert (served["claim"], served["verdict"]["state"]) == ("scale", "confirmed")


@pytest.mark.parametrize("name", claim_names())
def test_the_published_page_has_every_claim(name: str) -> None:
    """A verdict that is not "confirmed" in every size is followed by an interpretation."""
    section = PAGE.partition(f"## {name}\n")[2].partition("\n## ")[0]
    assert f"<!-- figures: lab verdict {name} -->" in section
    assert f"<!-- figures: lab numbers {name} -->" in section
    states = {report.verdict.state for report in lab.reports_of(RESULTS, name)}
    assert states == {"confirmed"} or "\nInterpretation: " in section


def test_the_served_reports_have_the_stored_verdicts_and_numbers() -> None:
    served = json.loads(lab.SERVED_REPORTS.read_text(encoding="utf-8"))
    stored = json.loads(lab.served_reports(RESULTS))
    assert [report["claim"] for report in served] == list(claim_names())
    for key in ("claim", "size", "seeds", "settings", "versions", "verdict", "table"):
        assert [report[key] for report in served] == [report[key] for report in stored]


def test_a_report_keeps_the_measurements_of_other_seeds() -> None:
    earlier = RESULTS["small/scale"]
    shifted = [{**each, "seed": each["seed"] + 2} for each in earlier["measurements"]]
    newer = {**earlier, "measurements": shifted}
    merged = lab.with_other_seeds(newer, earlier)["measurements"]
    assert {each["seed"] for each in merged} == {1, 2, 3, 4, 5}
    third = [each for each in merged if each["seed"] == 3]
    assert third == [each for each in shifted if each["seed"] == 3]
    other_settings = {**earlier, "settings": "Settings(width=1)"}
    assert lab.with_other_seeds(newer, other_settings) == newer
