"""Pages in docs/results equal the rendered result files."""

import json
from pathlib import Path
from typing import Any

from bench.alignment.experiment import FAMILIES
from bench.alignment.page import page as alignment_page
from bench.languages.page import page as languages_page

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_page_of_alignment_equals_the_rendered_results() -> None:
    results = [read_json(RESULTS / "alignment" / f"{family}.json") for family in FAMILIES]
    assert (RESULTS / "alignment.md").read_text(encoding="utf-8") == alignment_page(results)


def test_the_page_of_languages_equals_the_rendered_results() -> None:
    results = [read_json(path) for path in sorted((RESULTS / "languages").glob("*.json"))]
    assert (RESULTS / "languages.md").read_text(encoding="utf-8") == languages_page(results)
