"""docs/lab.md: every claim with its verdict, numbers and plot.

python -m bench.lab OUT           take the reports that `seqloom lab all --out OUT` wrote over to
                                  docs/results/lab and write
python -m bench.lab               write the page again from docs/results/lab
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from bench.lab_reasons import REASONS
from seqloom.lab.claim import Size
from seqloom.lab.names import claim_names
from seqloom.lab.report import Comparison, Report
from seqloom.lab.verdict import RULE
from seqloom.lab.writing import read_report, report_again
from seqloom.viz.chart import render_svg

DOCS = Path(__file__).parents[1] / "docs"
SIZES: tuple[Size, ...] = ("full", "small")

TOP = f"""# The lab

What the lectures claim, each put to the test by an experiment that anyone can run again:

```
seqloom lab                     every claim, and how it stands
seqloom lab bottleneck          put one to the test; the report is a folder with report.html and report.json
seqloom lab all --size full     every one, in the size for a GPU (--jobs 8: eight measurements side by side)
```

The small size takes five minutes at most on two cores with `--jobs 2`. What was measured before is not
measured again, so a run that was stopped goes on where it was. L0 to L4 are the five documents that
the claims come from. Sentences that begin with "What we make of it" are our reading of the numbers and
are not measured themselves.

**The rule.** {RULE} No seed is left out, but some experiments were made larger or
simpler after a look at seeds 1 to 3; `--seeds 11-13` asks seeds that no design has seen. A claim that does not hold is
reported so.

This page is written by `python -m bench.lab OUT` from the reports in [results/lab](results/lab).
"""


def collect(out: Path, results: Path) -> None:
    """Take over the reports of every claim, in each size in which it was run."""
    for size in SIZES:
        for name in claim_names():
            content = read_report(out / size / name / "report.json")
            if content is not None:
                path = results / size / f"{name}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                text = json.dumps(content, indent=1, ensure_ascii=False)
                path.write_text(text + "\n", encoding="utf-8")


def write(docs: Path) -> None:
    """The page and its pictures, from what was taken over."""
    pictures = docs / "pictures" / "lab"
    pictures.mkdir(parents=True, exist_ok=True)
    sections, rows = [], []
    for name in claim_names():
        found = [read_report(docs / "results" / "lab" / size / f"{name}.json") for size in SIZES]
        contents = [one for one in found if one is not None]
        reports = [report_again(one) for one in contents]
        rows.append(_row(name, reports))
        if not reports:
            continue
        for number, chart in enumerate(reports[0].charts, 1):
            path = pictures / f"{name}-{number}.svg"
            path.write_text(render_svg(chart) + "\n", encoding="utf-8")
        sections.append(_section(reports, contents[0]["settings"]))
    head = "\n".join([f"| claim | {' | '.join(SIZES)} |", f"|{'---|' * (1 + len(SIZES))}", *rows])
    (docs / "lab.md").write_text("\n".join([TOP, head, *sections]), encoding="utf-8")


def _row(name: str, reports: Sequence[Report]) -> str:
    by_size = {one.size: f"**{one.verdict.state}**, {_seeds(one)}" for one in reports}
    cells = [by_size.get(size, "not yet run") for size in SIZES]
    return f"| {f'[{name}](#{name})' if reports else name} | {' | '.join(cells)} |"


def _seeds(report: Report) -> str:
    seeds = report.results.seeds
    return f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"


def _section(reports: Sequence[Report], settings: str) -> str:
    """The larger size with its plots and numbers; of the smaller one what was found."""
    report, *smaller = reports
    claim = report.claim
    parts = [
        f"\n## {claim.name}\n",
        f"{claim.sentence} *({claim.source})*\n",
        *(_verdict(one) for one in reports),
        *([f"What we make of it: {REASONS[claim.name]}\n"] if claim.name in REASONS else []),
        *(
            f"![{claim.name}](pictures/lab/{claim.name}-{number}.svg)\n"
            for number, _ in enumerate(report.charts, 1)
        ),
        *([f"Plots and numbers are those of the size {report.size}.\n"] if smaller else []),
        table(report.table),
        *(_published(one) for one in report.comparisons),
        f"{claim.setup} `{settings}`",
    ]
    return "\n".join(parts)


def _verdict(report: Report) -> str:
    where = f"size {report.size}, {_seeds(report)}, on {', '.join(report.devices)}"
    statements = "\n".join(f"- {reason}" for reason in report.verdict.reason.split("; "))
    return f"**{report.verdict.state}**, {where}:\n\n{statements}\n"


def _published(comparison: Comparison) -> str:
    rows = [[one.label, f"{one.theirs:g}", f"{one.ours:.4g}"] for one in comparison.figures]
    lead = f"Published: {comparison.what} ({comparison.where}). {comparison.words}\n"
    return f"{lead}\n{table([['', 'published', 'here'], *rows])}"


def table(rows: list[list[str]]) -> str:
    """Its first row are heads."""
    head, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *others, ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.lab",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path, nargs="?", help="what `seqloom lab --out` wrote")
    chosen = parser.parse_args()
    if chosen.out is not None:
        collect(chosen.out, DOCS / "results" / "lab")
    write(DOCS)


if __name__ == "__main__":
    main()
