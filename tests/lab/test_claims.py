"""Every claim runs, is reported and drawn, in its smallest size."""

import json
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from seqloom.lab.claim import Trial
from seqloom.lab.registry import claim_names, find_claim
from seqloom.lab.reporting.report_files import read_report, rebuild_report, write_report
from seqloom.lab.running.runner import Experiment, list_jobs, run_jobs
from seqloom.viz.chart import render_svg


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all claims, so that they share trained models."""
    return tmp_path_factory.mktemp("lab")


@pytest.mark.slow
@pytest.mark.parametrize("name", claim_names())
def test_a_claim_runs_and_its_report_is_complete(name: str, out: Path) -> None:
    experiment = Experiment(out, name, "tiny")
    jobs = list_jobs(experiment, range(1, 2))
    assert not run_jobs(jobs, 1, lambda job, activity, fraction: None)
    claim, report = find_claim(name), write_report(experiment, range(1, 2))
    for condition in claim.conditions:
        assert any(
            column.name in measurement.numbers
            for measurement in report.results.measurements
            for column in claim.columns
            if measurement.condition == condition
        )
    for chart in report.charts:
        xml.fromstring(render_svg(chart))
    text = (experiment.folder / "report.html").read_text(encoding="utf-8")
    assert claim.name in text
    assert "<svg" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")  # self-contained
    content = read_report(experiment.folder / "report.json")
    assert content is not None
    assert rebuild_report(content) == report
    assert json.loads(json.dumps(content)) == content


@pytest.mark.parametrize("name", claim_names())
def test_a_claim_is_fully_described(name: str) -> None:
    claim = find_claim(name)
    texts = (claim.sentence, claim.setup, claim.confirms, claim.refutes)
    assert all(text.endswith(".") for text in texts)
    assert claim.source.startswith(("L0", "L1", "L2", "L3", "L4"))
    assert set(claim.sizes) == {"tiny", "small", "full"}
    assert len(set(claim.conditions)) == len(claim.conditions)
    figures = [figure for published in claim.published for figure in published.figures]
    assert {figure.condition for figure in figures} <= set(claim.conditions)


@pytest.mark.parametrize("name", claim_names())
def test_the_recipes_of_every_size_are_valid(name: str, tmp_path: Path) -> None:
    """The tests do not run the larger sizes, so this checks at least their recipes."""
    claim = find_claim(name)
    module = sys.modules[claim.measure.__module__]
    if not hasattr(module, "configure"):
        pytest.skip("this claim measures without a recipe")
    configs = [
        module.configure(Trial(condition, 1, settings, tmp_path, lambda activity, fraction: None))
        for settings in claim.sizes.values()
        for condition in claim.conditions
    ]
    assert len(configs) == len(claim.sizes) * len(claim.conditions)
