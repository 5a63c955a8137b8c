"""Reports on disk: written for people and programs, and read again."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqloom.core.storage import storage_errors, write_file
from seqloom.lab.laboratory import Place, results_of
from seqloom.lab.page import page
from seqloom.lab.registry import find_claim
from seqloom.lab.report import Report
from seqloom.lab.results import Measurement, Results


def write_report(place: Place, seeds: Sequence[int]) -> Report:
    """report.html and report.json, from what was measured."""
    report = Report(find_claim(place.claim), place.size, results_of(place, seeds))
    with storage_errors(place.folder):
        place.folder.mkdir(parents=True, exist_ok=True)
    write_file(place.folder / "report.html", page(report).encode())
    # Last: whoever reads it finds the page it belongs to.
    text = json.dumps(report.to_json(), indent=2, ensure_ascii=False)
    write_file(place.folder / "report.json", text.encode())
    return report


def read_report(path: Path) -> Mapping[str, Any] | None:
    """An earlier report.json; None if there is none that can be read."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        return content if isinstance(content["verdict"]["state"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def report_again(content: Mapping[str, Any]) -> Report:
    """A report from its JSON, judged and drawn as the claim says today."""
    measurements = [Measurement(**one) for one in content["measurements"]]
    return Report(find_claim(content["claim"]), content["size"], Results(measurements))
