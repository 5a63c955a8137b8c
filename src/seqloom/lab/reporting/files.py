"""Writes and reads the report files of a claim."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqloom.core.storage import storage_errors, write_file
from seqloom.lab.registry import find_claim
from seqloom.lab.reporting.html import render_html
from seqloom.lab.reporting.report import ClaimReport
from seqloom.lab.results import Measurement, Results
from seqloom.lab.running.runner import Experiment, load_results


def write_report(experiment: Experiment, seeds: Sequence[int]) -> ClaimReport:
    """Write report.html and report.json from the measurements of an experiment."""
    claim = find_claim(experiment.claim)
    report = ClaimReport(claim, experiment.size, load_results(experiment, seeds))
    with storage_errors(experiment.folder):
        experiment.folder.mkdir(parents=True, exist_ok=True)
    write_file(experiment.folder / "report.html", render_html(report).encode())
    # Written last: a reader of report.json can rely on the HTML page being there.
    text = json.dumps(report.to_json(), indent=2, ensure_ascii=False)
    write_file(experiment.folder / "report.json", text.encode())
    return report


def read_report(path: Path) -> Mapping[str, Any] | None:
    """The content of a report.json; None if it is missing or damaged."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        return content if isinstance(content["verdict"]["state"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rebuild_report(content: Mapping[str, Any]) -> ClaimReport:
    """A report from the content of report.json, judged and drawn by the current code."""
    measurements = [Measurement(**each) for each in content["measurements"]]
    return ClaimReport(find_claim(content["claim"]), content["size"], Results(measurements))
