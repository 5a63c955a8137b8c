"""Reports on disk: JSON and a self-contained HTML page."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from seqloom.core.storage import storage_errors, write_file
from seqloom.lab.registry import find_claim
from seqloom.lab.reporting.report import ClaimReport, PublishedComparison
from seqloom.lab.results import Measurement, Results
from seqloom.lab.running.runner import Experiment, load_results
from seqloom.lab.verdict import RULE
from seqloom.viz.chart import render_svg

_STYLE = "\n" + (Path(__file__).parent / "report.css").read_text(encoding="utf-8")


def render_html(report: ClaimReport) -> str:
    """Render a report as a complete HTML page."""
    claim, verdict = report.claim, report.verdict
    seeds = len(report.results.seeds)
    seed_range = f"{min(report.results.seeds)}-{max(report.results.seeds)}"
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in verdict.reason.split("; "))
    parts = [
        f'<p class="soft">seqloom lab · {escape(claim.name)} · size {report.size} · {seeds} '
        f"seed{'' if seeds == 1 else 's'} · {escape(', '.join(report.devices))} · "
        f"{format_duration(report.seconds)}</p>",
        f"<h1>{escape(claim.sentence)}</h1>",
        f'<p class="soft">{escape(claim.source)}</p>',
        f'<div class="verdict" style="--hue:var(--{verdict.state})"><b>{verdict.state}</b>'
        f"<ul>{reasons}</ul></div>",
        *(render_svg(chart) for chart in report.charts),
        "<h2>Numbers</h2>",
        table(report.table),
        '<p class="soft">Mean over the seeds, ± their standard deviation.</p>',
        *(_published(comparison) for comparison in report.comparisons),
        "<h2>Experiment</h2>",
        f"<dl><dt>Setup</dt><dd>{escape(claim.setup)}</dd>"
        f"<dt>Confirmed if</dt><dd>{escape(claim.confirms)}</dd>"
        f"<dt>Refuted if</dt><dd>{escape(claim.refutes)}</dd>"
        f"<dt>Rule</dt><dd>{escape(RULE)}</dd>"
        f"<dt>Settings</dt><dd><code>{escape(repr(claim.sizes[report.size]))}</code></dd>"
        f"<dt>Reproduce</dt><dd><code>seqloom lab {escape(claim.name)} --size {report.size} --seeds "
        f"{seed_range}</code></dd></dl>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{escape(claim.name)}: '
        f"{verdict.state}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _published(comparison: PublishedComparison) -> str:
    rows = [
        [figure.label, f"{figure.theirs:g}", f"{figure.ours:.4g}"] for figure in comparison.figures
    ]
    return (
        f"<h2>Published results</h2><p>{escape(comparison.what)} ({escape(comparison.where)}). The "
        "experiments differ in size, so only the order is compared. "
        f"<b>{escape(comparison.summary)}</b></p>" + table([["", "published", "here"], *rows])
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Render an HTML table whose first row is the heading. A wide table scrolls horizontally."""
    heading, *others = rows
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in others
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def format_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def write_report(experiment: Experiment, seeds: Sequence[int]) -> ClaimReport:
    """Write report.html and report.json from the measurements of an experiment."""
    claim = find_claim(experiment.claim)
    report = ClaimReport(claim, experiment.size, load_results(experiment, seeds))
    with storage_errors(experiment.folder):
        experiment.folder.mkdir(parents=True, exist_ok=True)
    write_file(experiment.folder / "report.html", render_html(report).encode())
    # report.json is written last: if it exists, the HTML page exists too.
    text = json.dumps(report.to_json(), indent=2, ensure_ascii=False)
    write_file(experiment.folder / "report.json", text.encode())
    return report


def read_report(path: Path) -> Mapping[str, Any] | None:
    """Read a report.json. Returns None if the file is missing or damaged."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        return content if isinstance(content["verdict"]["state"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rebuild_report(content: Mapping[str, Any]) -> ClaimReport:
    """Rebuild a report from the measurements in report.json.

    The verdict and the charts are computed again, with the current code.
    """
    measurements = [Measurement(**each) for each in content["measurements"]]
    return ClaimReport(find_claim(content["claim"]), content["size"], Results(measurements))
