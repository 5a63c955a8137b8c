"""docs/lab.md: every claim with its verdict, numbers and plot.

python -m bench.lab OUT           take the reports that `seqloom lab all --out OUT` wrote over to
                                  docs/results/lab (the full size where there is one) and write
python -m bench.lab               write the page again from docs/results/lab
"""

import argparse
import json
from pathlib import Path
from typing import Any

from seqloom.lab.names import claim_names
from seqloom.lab.report import Comparison, Report
from seqloom.lab.verdict import RULE
from seqloom.lab.writing import read_report, report_again
from seqloom.viz.chart import draw

DOCS = Path(__file__).parents[1] / "docs"

TOP = f"""# The lab

What the lectures claim, each put to the test by an experiment that anyone can run again:

```
seqloom lab                     every claim, and how it stands
seqloom lab bottleneck          put one to the test; the report is a folder with report.html and report.json
seqloom lab all --size full     every one, in the size for a GPU (--jobs 8: eight measurements side by side)
```

The small size takes minutes on two cores. What was measured before is not measured again, so a run that was
stopped goes on where it was. L0 to L4 are the five documents that the claims come from.

**The rule.** {RULE} No seed is left out, but some experiments were made larger or
simpler after a look at seeds 1 to 3; `--seeds 11-13` asks seeds that no design has seen. A claim that does not hold is
reported so.

This page is written by `python -m bench.lab OUT` from the reports in [results/lab](results/lab).
"""


def collect(out: Path, results: Path) -> None:
    """Take over the latest report of each claim: full where it was run, else small."""
    results.mkdir(parents=True, exist_ok=True)
    for name in claim_names():
        found = [read_report(out / size / name / "report.json") for size in ("full", "small")]
        for content in [one for one in found if one is not None][:1]:
            text = json.dumps(content, indent=1, ensure_ascii=False)
            (results / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def write(docs: Path) -> None:
    """The page and its pictures, from what was taken over."""
    pictures = docs / "pictures" / "lab"
    pictures.mkdir(parents=True, exist_ok=True)
    sections, rows = [], []
    for name in claim_names():
        content = read_report(docs / "results" / "lab" / f"{name}.json")
        if content is None:
            rows.append(f"| {name} | not yet run | | |")
            continue
        report = report_again(content)
        for number, chart in enumerate(report.charts, 1):
            path = pictures / f"{name}-{number}.svg"
            path.write_text(draw(chart) + "\n", encoding="utf-8")
        rows.append(_row(report))
        sections.append(_section(report, content))
    head = "\n".join(["| claim | verdict | size | seeds |", "|---|---|---|---|", *rows])
    (docs / "lab.md").write_text("\n".join([TOP, head, *sections]), encoding="utf-8")


def _row(report: Report) -> str:
    name, verdict = report.claim.name, report.verdict
    seeds = len(report.results.seeds)
    return f"| [{name}](#{name}) | **{verdict.state}** | {report.size} | {seeds} |"


def _section(report: Report, content: Any) -> str:
    claim, verdict = report.claim, report.verdict
    parts = [
        f"\n## {claim.name}\n",
        f"{claim.sentence} *({claim.source})*\n",
        f"**{verdict.state}**, size {report.size}, {len(report.results.seeds)} seeds, on "
        f"{', '.join(report.devices)}:\n",
        *(f"- {reason}" for reason in verdict.reason.split("; ")),
        "",
        *(
            f"![{claim.name}](pictures/lab/{claim.name}-{number}.svg)\n"
            for number, _ in enumerate(report.charts, 1)
        ),
        table(report.table),
        *(_published(one) for one in report.comparisons),
        f"{claim.setup} `{content['settings']}`",
    ]
    return "\n".join(parts)


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
