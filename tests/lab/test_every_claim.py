"""Every claim runs, reports and draws, in a size that only shows that it does."""

import json
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from seqloom.lab.claim import Trial
from seqloom.lab.laboratory import Place, carry_out, jobs_of, measured
from seqloom.lab.names import claim_names
from seqloom.lab.registry import find_claim
from seqloom.lab.writing import read_report, report_again, write_report
from seqloom.viz.chart import render_svg


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all claims, so that those who need the same model share it."""
    return tmp_path_factory.mktemp("lab")


@pytest.mark.parametrize("name", claim_names())
def test_a_claim_runs_reports_and_draws(name: str, out: Path) -> None:
    place = Place(out, name, "tiny")
    jobs = jobs_of(place, range(1, 2))
    assert not carry_out(jobs, 1, lambda job, words, share: None)
    claim, report = find_claim(name), write_report(place, range(1, 2))
    for condition in claim.conditions:
        assert any(
            column.name in one.numbers
            for one in report.results.measurements
            for column in claim.columns
            if one.condition == condition
        )
    for chart in report.charts:
        xml.fromstring(render_svg(chart))
    text = (place.folder / "report.html").read_text(encoding="utf-8")
    assert claim.name in text
    assert "<svg" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")  # it needs nothing else
    content = read_report(place.folder / "report.json")
    assert content is not None
    assert report_again(content) == report
    assert json.loads(json.dumps(content)) == content


@pytest.mark.parametrize("name", claim_names())
def test_a_claim_says_what_it_is_about(name: str) -> None:
    claim = find_claim(name)
    texts = (claim.sentence, claim.setup, claim.confirms, claim.refutes)
    assert all(text.endswith(".") for text in texts)
    assert claim.source.startswith(("L0", "L1", "L2", "L3", "L4"))
    assert set(claim.sizes) == {"tiny", "small", "full"}
    assert len(set(claim.conditions)) == len(claim.conditions)
    figures = [figure for one in claim.published for figure in one.figures]
    assert {figure.condition for figure in figures} <= set(claim.conditions)


@pytest.mark.parametrize("name", claim_names())
def test_the_recipes_of_every_size_can_be_used(name: str, tmp_path: Path) -> None:
    """The full size is not run here, so that it could be run is all that can be seen."""
    claim = find_claim(name)
    module = sys.modules[claim.measure.__module__]
    if not hasattr(module, "configure"):
        return
    for settings in claim.sizes.values():
        for condition in claim.conditions:
            module.configure(Trial(condition, 1, settings, tmp_path, lambda words, share: None))


def test_what_was_measured_is_not_measured_again(out: Path) -> None:
    place = Place(out, "scale", "tiny")
    jobs = jobs_of(place, range(1, 2))
    carry_out(jobs, 1, lambda job, words, share: None)
    told: list[str] = []
    carry_out(jobs, 1, lambda job, words, share: told.append(words))
    assert told == ["known"] * len(jobs)


def test_a_measurement_under_other_settings_does_not_count(tmp_path: Path) -> None:
    [job, *_] = jobs_of(Place(tmp_path, "scale", "tiny"), range(1, 2))
    carry_out([job], 1, lambda job, words, share: None)
    assert measured(job) is not None
    larger = jobs_of(Place(tmp_path, "scale", "small"), range(1, 2))[0]
    larger.path.parent.mkdir(parents=True)
    larger.path.write_bytes(job.path.read_bytes())
    assert measured(larger) is None
