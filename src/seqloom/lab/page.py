"""A report as one HTML file that needs nothing else, light and dark."""

from collections.abc import Sequence
from html import escape

from seqloom.lab.report import Comparison, Report
from seqloom.lab.verdict import RULE
from seqloom.viz.chart import render_svg

_STYLE = """
:root{color-scheme:light dark;--ink:#1f2937;--soft:#6b7280;--paper:#fff;--card:#f8fafc;
--line:#e5e7eb;--confirmed:#08519c;--refuted:#b45309;--undecided:#6b7280}
@media(prefers-color-scheme:dark){:root{--ink:#e5e7eb;--soft:#9ca3af;--paper:#111827;
--card:#1f2937;--line:#374151;--confirmed:#6baed6;--refuted:#fbbf24;--undecided:#9ca3af}}
body{margin:0 auto;max-width:46rem;padding:2.5rem 1.25rem 4rem;background:var(--paper);
color:var(--ink);font:16px/1.55 system-ui,sans-serif}
h1{font-size:1.5rem;line-height:1.3;margin:.2rem 0 .5rem;font-weight:650}
h2{font-size:1.05rem;margin:2.2rem 0 .5rem}
.soft{color:var(--soft);font-size:.9rem}
.verdict{border-left:5px solid var(--hue);background:var(--card);padding:.8rem 1.1rem;
border-radius:0 .5rem .5rem 0;margin:1.4rem 0}
.verdict b{color:var(--hue);font-size:1.1rem}
.verdict ul{margin:.4rem 0 0;padding-left:1.2rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
th{font-weight:600;text-align:right;color:var(--soft)}
td{text-align:right}td,th{padding:.35rem .9rem .35rem 0;border-bottom:1px solid var(--line);
white-space:nowrap}td:first-child,th:first-child{text-align:left}
svg{width:100%;height:auto;margin:.6rem 0}
dt{font-weight:600;margin-top:.6rem}dd{margin:0}code{font-size:.85rem;overflow-wrap:anywhere}
"""


def page(report: Report) -> str:
    """The whole page."""
    claim, verdict = report.claim, report.verdict
    seeds = len(report.results.seeds)
    which = f"{min(report.results.seeds)}-{max(report.results.seeds)}"
    reasons = "".join(f"<li>{escape(part)}</li>" for part in verdict.reason.split("; "))
    parts = [
        f'<p class="soft">seqloom lab · {escape(claim.name)} · size {report.size} · {seeds} '
        f"seed{'' if seeds == 1 else 's'} · {escape(', '.join(report.devices))} · "
        f"{minutes(report.seconds)}</p>",
        f"<h1>{escape(claim.sentence)}</h1>",
        f'<p class="soft">{escape(claim.source)}</p>',
        f'<div class="verdict" style="--hue:var(--{verdict.state})"><b>{verdict.state}</b>'
        f"<ul>{reasons}</ul></div>",
        *(render_svg(chart) for chart in report.charts),
        "<h2>Numbers</h2>",
        table(report.table),
        '<p class="soft">Mean over the seeds, ± their standard deviation.</p>',
        *(_published(one) for one in report.comparisons),
        "<h2>The experiment</h2>",
        f"<dl><dt>What is done</dt><dd>{escape(claim.setup)}</dd>"
        f"<dt>What would confirm it</dt><dd>{escape(claim.confirms)}</dd>"
        f"<dt>What would refute it</dt><dd>{escape(claim.refutes)}</dd>"
        f"<dt>The rule</dt><dd>{escape(RULE)}</dd>"
        f"<dt>Settings</dt><dd><code>{escape(repr(claim.sizes[report.size]))}</code></dd>"
        f"<dt>Again</dt><dd><code>seqloom lab {escape(claim.name)} --size {report.size} --seeds "
        f"{which}</code></dd></dl>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{escape(claim.name)}: '
        f"{verdict.state}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _published(comparison: Comparison) -> str:
    rows = [[one.label, f"{one.theirs:g}", f"{one.ours:.4g}"] for one in comparison.figures]
    return (
        f"<h2>Published</h2><p>{escape(comparison.what)} ({escape(comparison.where)}). The sizes "
        f"differ, so only the order is compared. <b>{escape(comparison.words)}</b></p>"
        + table([["", "published", "here"], *rows])
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Its first row are heads. It scrolls by itself where it is too wide."""
    heads, *others = rows
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in others
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def minutes(seconds: float) -> str:
    """A time as people say it."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
