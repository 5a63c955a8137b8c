"""GET /api/lab: reports of `seqloom lab`.

`seqloom lab` tests claims about models in experiments and writes one report per claim. The server
reads the reports in the lab folders next to the loaded run folders. For a claim without a report
there, it returns the published report that is part of seqloom.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import fastapi
from fastapi import APIRouter
from pydantic import BaseModel, Field

from seqloom.core.finite_json import to_finite_json
from seqloom.serving.errors import ERROR_RESPONSES, ApiError
from seqloom.serving.server.service import WITH_KEY, Service, ServiceDependency

LAB_FOLDER = "lab"
SIZES = ("full", "small", "tiny")
MAX_BYTES = 8 * 1024 * 1024
"""Maximum size of a report file. Larger files are not from `seqloom lab` and are ignored."""

router = APIRouter(prefix="/api", dependencies=WITH_KEY, responses=ERROR_RESPONSES, tags=["page"])


class ReportSummary(BaseModel):
    """Summary of a report of `seqloom lab`: the claim and its verdict."""

    claim: str = Field(description="Name of the claim.")
    size: str = Field(description="Size of the experiment: full, small or tiny.")
    sentence: str = Field(description="The claim.")
    state: str = Field(description="Verdict: confirmed, refuted or undecided.")
    reason: str = Field(description="Reasons for the verdict, separated by semicolons.")
    published: bool = Field(
        description="True if the report is part of seqloom; false if it was found next to a run."
    )


class ReportsResponse(BaseModel):
    """Summaries of the reports of `seqloom lab`, one for each claim."""

    reports: list[ReportSummary] = Field(description="The reports, sorted by claim.")


class ReportResponse(BaseModel):
    """One report of `seqloom lab`."""

    report: dict[str, Any] = Field(description="Content of report.json from `seqloom lab`.")


class LabReport(NamedTuple):
    """A report of `seqloom lab`: its summary, and the content of its file report.json."""

    summary: ReportSummary
    content: dict[str, Any]


@router.get("/lab")
async def get_reports(service: ServiceDependency) -> ReportsResponse:
    """List the reports of `seqloom lab`: each claim and whether it was confirmed."""
    reports = await asyncio.to_thread(find_reports, _run_folders(service))
    return ReportsResponse(reports=[report.summary for report in reports.values()])


@router.get("/lab/{claim}")
async def get_report(
    claim: Annotated[str, fastapi.Path(description="Name of the claim.", examples=["scale"])],
    service: ServiceDependency,
) -> ReportResponse:
    """Return the report of `seqloom lab` about one claim, with its tables and charts."""
    # The name is compared with those of the existing reports and never used as a path.
    reports = await asyncio.to_thread(find_reports, _run_folders(service))
    if claim not in reports:
        raise ApiError(
            404,
            "not-found",
            f"there is no report of '{claim}'; write it with: seqloom lab {claim}",
        )
    return ReportResponse(report=to_finite_json(reports[claim].content))


def _run_folders(service: Service) -> list[Path]:
    return [loaded.run.folder for loaded in service.catalogue.runs]


def find_reports(run_folders: Sequence[Path]) -> dict[str, LabReport]:
    """Return a dictionary from the name of a claim to its report, sorted by name.

    A report in a lab folder next to a run folder replaces the published report, which is part of
    seqloom. If a lab folder has several reports of a claim, the one of the largest experiment is
    returned.
    """
    reports: dict[str, LabReport] = {}
    for path in _report_paths(run_folders):
        content = _read_json(path)
        summary = _summarise(content, published=False)
        if content is not None and summary is not None:
            reports.setdefault(summary.claim, LabReport(summary, content))
    return dict(sorted((published_reports() | reports).items()))


@cache
def published_reports() -> dict[str, LabReport]:
    """Return the reports that are part of seqloom, as a dictionary from claim to report.

    `python -m bench lab REPORTS --out bench/store` writes them.
    """
    text = (files("seqloom.serving") / "published_reports.json").read_text(encoding="utf-8")
    summaries = ((_summarise(content, published=True), content) for content in json.loads(text))
    return {
        summary.claim: LabReport(summary, content)
        for summary, content in summaries
        if summary is not None
    }


def _report_paths(run_folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the paths of the reports in the lab folders next to the run folders.

    Example: for the run folder runs/demo, a report is runs/lab/small/bottleneck/report.json. Here,
    "small" is the size of the experiment and "bottleneck" is the claim. In each lab folder, reports
    of larger experiments come first.
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


def _summarise(report: dict[str, Any] | None, *, published: bool) -> ReportSummary | None:
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
            published=published,
        )
    except (AssertionError, KeyError, TypeError, ValueError):
        return None
