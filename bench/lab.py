"""The verdicts of the lab: docs/lab.md, its charts, and the reports that `seqloom serve` shows.

Adds the reports that `seqloom lab all --out REPORTS` has written to the stored ones. Measurements of other
seeds are kept if they have the same setup, settings and versions. Without REPORTS, draws the stored ones.
"""

import argparse
import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from bench import store
from bench.tables import markdown
from seqloom.lab.claim import Size
from seqloom.lab.registry import claim_names
from seqloom.lab.reporting.report import ClaimReport, PublishedComparison
from seqloom.lab.reporting.report_files import read_report, rebuild_report
from seqloom.viz.chart import render_svg

PICTURES = store.ROOT / "docs" / "pictures" / "lab"
SERVED_REPORTS = store.ROOT / "src" / "seqloom" / "serving" / "published_reports.json"
SIZES: tuple[Size, ...] = ("full", "small")
STORED = ("claim", "size", "setup", "settings", "versions", "measurements")
"""What is stored of a report. The rest is computed from it."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "reports", type=Path, nargs="?", help="output folder of `seqloom lab --out`"
    )


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    results = {key: value for key, value in (options.earlier or {}).items() if key != "about"}
    for size in SIZES if options.reports else ():
        for name in claim_names():
            content = read_report(options.reports / size / name / "report.json")
            if content is not None:
                key = f"{size}/{name}"
                stored = {name: content[name] for name in STORED}
                results[key] = with_other_seeds(stored, results.get(key))
    yield dict(sorted(results.items()))


def with_other_seeds(content: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
    """A report with the measurements of both reports. The newer one replaces equal seeds.

    If the two reports do not describe the same experiment, `content` is returned.
    """
    if earlier is None or any(content[key] != earlier[key] for key in STORED[:-1]):
        return content
    seeds = {each["seed"] for each in content["measurements"]}
    kept = [each for each in earlier["measurements"] if each["seed"] not in seeds]
    measurements = sorted([*kept, *content["measurements"]], key=itemgetter("seed"))
    return {**content, "measurements": measurements}


def reports_of(results: dict[str, Any], name: str) -> list[ClaimReport]:
    """The reports of a claim, the largest size first."""
    keys = [f"{size}/{name}" for size in SIZES]
    return [rebuild_report(results[key]) for key in keys if key in results]


def draw() -> None:
    """Write the charts of the largest size of each claim, and the reports of the web page."""
    results = store.read("lab")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in claim_names():
        for report in reports_of(results, name)[:1]:
            for number, chart in enumerate(report.charts, 1):
                path = PICTURES / f"{name}-{number}.svg"
                path.write_text(render_svg(chart) + "\n", encoding="utf-8")
    SERVED_REPORTS.write_text(served_reports(results), encoding="utf-8")


def served_reports(results: dict[str, Any]) -> str:
    """The largest report of each claim as JSON, without the single measurements."""
    lines = []
    for name in claim_names():
        for report in reports_of(results, name)[:1]:
            stored = results[f"{report.size}/{name}"]
            content = {**report.to_json(), **{key: stored[key] for key in ("settings", "versions")}}
            del content["measurements"]
            lines.append(json.dumps(content, ensure_ascii=False))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def table(results: dict[str, Any], part: str = "all", name: str = "") -> str:
    """A part of the page: `all` claims, the `verdict` of one, or its `numbers`."""
    if part == "all":
        rows = [[_link(each), *_states(reports_of(results, each))] for each in claim_names()]
        return markdown(["claim", *SIZES], rows)
    reports = reports_of(results, name)
    if part == "verdict":
        return "\n".join(_verdict(each) for each in reports)
    return _numbers(reports, results[f"{reports[0].size}/{name}"]["settings"])


def _link(name: str) -> str:
    return f"[{name}](#{name})"


def _states(reports: Sequence[ClaimReport]) -> list[str]:
    by_size = {report.size: f"**{report.verdict.state}**, {_seeds(report)}" for report in reports}
    return [by_size.get(size, "not yet run") for size in SIZES]


def _seeds(report: ClaimReport) -> str:
    """List the seeds: "seed 3", or "seeds 11 to 13 and 21 to 25"."""
    seeds = report.results.seeds
    starts = [seed for seed in seeds if seed - 1 not in seeds]
    ends = [seed for seed in seeds if seed + 1 not in seeds]
    ranges = [
        str(start) if start == end else f"{start} to {end}"
        for start, end in zip(starts, ends, strict=True)
    ]
    return f"seed{'s' if len(seeds) > 1 else ''} {' and '.join(ranges)}"


def _verdict(report: ClaimReport) -> str:
    context = f"size {report.size}, {_seeds(report)}, on {', '.join(report.devices)}"
    statements = "\n".join(f"- {reason}" for reason in report.verdict.reason.split("; "))
    return f"**{report.verdict.state}**, {context}:\n\n{statements}\n"


def _numbers(reports: Sequence[ClaimReport], settings: str) -> str:
    """The charts and numbers of the largest size."""
    report, *smaller = reports
    name = report.claim.name
    parts = [
        *(
            f"![{name}](pictures/lab/{name}-{number}.svg)\n"
            for number, _ in enumerate(report.charts, 1)
        ),
        *([f"Charts and numbers are those of the size {report.size}.\n"] if smaller else []),
        f"{markdown(report.table[0], report.table[1:])}\n",
        *map(_published, report.comparisons),
        f"{report.claim.setup} `{settings}`",
    ]
    return "\n".join(parts)


def _published(comparison: PublishedComparison) -> str:
    rows = [
        [figure.label, f"{figure.theirs:g}", f"{figure.ours:.4g}"] for figure in comparison.figures
    ]
    lead = f"Published: {comparison.what} ({comparison.where}). {comparison.summary}\n"
    return f"{lead}\n{markdown(['', 'published', 'here'], rows)}\n"
