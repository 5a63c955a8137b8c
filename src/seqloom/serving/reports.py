"""Reports of the lab, found beside the runs that are served."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seqloom.serving.problems import Problem
from seqloom.serving.schema_page import ReportLine

LAB = "lab"
SIZES = ("full", "small", "tiny")
MOST = 8 * 1024 * 1024
"""Bytes of a report; a larger one is none of ours."""


def find_reports(folders: Sequence[Path]) -> list[tuple[ReportLine, Path]]:
    """Of every claim the largest size that was run, by name."""
    found: dict[str, tuple[ReportLine, Path]] = {}
    for path in _paths(folders):
        line = _line(_content(path))
        if line is not None and line.claim not in found:
            found[line.claim] = (line, path)
    return [found[claim] for claim in sorted(found)]


def read_report(folders: Sequence[Path], claim: str) -> dict[str, Any]:
    """The whole report. A claim is looked up, never made a path of."""
    for line, path in find_reports(folders):
        if line.claim == claim and (content := _content(path)) is not None:
            return content
    raise Problem(
        404,
        "not-found",
        f"there is no report of '{claim}' here; write it with: seqloom lab {claim}",
    )


def _paths(folders: Sequence[Path]) -> Iterator[Path]:
    """Wherever runs are, `seqloom lab` writes beside them: runs/lab/small/bottleneck."""
    for parent in dict.fromkeys(folder.resolve().parent for folder in folders):
        for size in SIZES:
            yield from sorted((parent / LAB / size).glob("*/report.json"))


def _content(path: Path) -> dict[str, Any] | None:
    """None: it cannot be read, or is no report."""
    try:
        if path.is_symlink() or path.stat().st_size > MOST:
            return None
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _line(content: dict[str, Any] | None) -> ReportLine | None:
    try:
        assert content is not None
        verdict = content["verdict"]
        return ReportLine(
            claim=content["claim"],
            size=content["size"],
            sentence=content["sentence"],
            state=verdict["state"],
            reason=verdict["reason"],
        )
    except (AssertionError, KeyError, TypeError, ValueError):
        return None
