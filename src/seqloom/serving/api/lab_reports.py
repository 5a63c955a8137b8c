"""GET /api/lab: reports of `seqloom lab`, from the lab folders next to the loaded run folders."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from seqloom.serving.api.errors import ERROR_RESPONSES, ApiError
from seqloom.serving.api.inspection import to_finite_json
from seqloom.serving.api.schemas.page import ReportResponse, ReportsResponse, ReportSummary
from seqloom.serving.server.service import WITH_KEY, Service, ServiceDependency

LAB_FOLDER = "lab"
SIZES = ("full", "small", "tiny")
MAX_BYTES = 8 * 1024 * 1024
"""Maximum size of a report file. Larger files are not from `seqloom lab` and are ignored."""

router = APIRouter(prefix="/api", dependencies=WITH_KEY, responses=ERROR_RESPONSES, tags=["page"])


@router.get("/lab")
async def get_reports(service: ServiceDependency) -> ReportsResponse:
    """List the reports with their verdicts."""
    reports = await asyncio.to_thread(find_reports, _run_folders(service))
    return ReportsResponse(reports=[summary for summary, _ in reports])


@router.get("/lab/{claim}")
async def get_report(claim: str, service: ServiceDependency) -> ReportResponse:
    """Return one report with its tables and charts."""
    report = await asyncio.to_thread(read_report, _run_folders(service), claim)
    return ReportResponse(report=to_finite_json(report))


def _run_folders(service: Service) -> list[Path]:
    return [loaded.run.folder for loaded in service.catalogue.runs]


def find_reports(run_folders: Sequence[Path]) -> list[tuple[ReportSummary, Path]]:
    """Return (summary, path) of one report for each claim that has a report, sorted by claim.

    If a claim has several reports, this is the first one that `_report_paths` yields.
    """
    reports: dict[str, tuple[ReportSummary, Path]] = {}
    for path in _report_paths(run_folders):
        summary = _summarise(_read_json(path))
        if summary is not None and summary.claim not in reports:
            reports[summary.claim] = (summary, path)
    return [reports[claim] for claim in sorted(reports)]


def read_report(run_folders: Sequence[Path], claim: str) -> dict[str, Any]:
    """Return the report of a claim. Raises a 404 error if there is none.

    `claim` comes from the request. It is compared with the existing reports, never used as a path.
    """
    for summary, path in find_reports(run_folders):
        if summary.claim == claim and (content := _read_json(path)) is not None:
            return content
    raise ApiError(
        404,
        "not-found",
        f"there is no report of '{claim}'; write it with: seqloom lab {claim}",
    )


def _report_paths(run_folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the paths of the reports in the lab folders next to the run folders.

    Example: runs/lab/small/bottleneck/report.json for the run folder runs/demo. In each lab folder,
    the reports of the largest experiment size come first.
    """
    for parent in dict.fromkeys(folder.resolve().parent for folder in run_folders):
        for size in SIZES:
            yield from sorted((parent / LAB_FOLDER / size).glob("*/report.json"))


def _read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file.

    Returns None if the file is too large, cannot be read, is a symbolic link or contains no JSON
    object.
    """
    try:
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _summarise(report: dict[str, Any] | None) -> ReportSummary | None:
    """Return the summary of a report, or None if `report` is not a valid report."""
    try:
        assert report is not None
        verdict = report["verdict"]
        return ReportSummary(
            claim=report["claim"],
            size=report["size"],
            sentence=report["sentence"],
            state=verdict["state"],
            reason=verdict["reason"],
        )
    except (AssertionError, KeyError, TypeError, ValueError):
        return None
