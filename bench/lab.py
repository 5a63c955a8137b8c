"""Writes docs/lab.md: every claim of the lab with its verdict, numbers and charts.

python -m bench.lab OUT   add the reports of `seqloom lab all --out OUT` to docs/results/lab and
                          write the page. Measurements of other seeds are kept if they have the
                          same setup, settings and versions
python -m bench.lab       write the page from docs/results/lab

Both also write the reports that `seqloom serve` shows in the Lab view.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from bench.lab_reasons import REASONS
from seqloom.lab.claim import Size
from seqloom.lab.registry import claim_names
from seqloom.lab.reporting.report import ClaimReport, PublishedComparison
from seqloom.lab.reporting.report_files import read_report, rebuild_report
from seqloom.lab.verdict import RULE
from seqloom.viz.chart import render_svg

DOCS = Path(__file__).parents[1] / "docs"
SERVED_REPORTS = DOCS.parent / "src" / "seqloom" / "serving" / "published_reports.json"
SIZES: tuple[Size, ...] = ("full", "small")

TOP = f"""# The lab

Claims of the lectures, each tested by a reproducible experiment:

<!-- not run: long -->

```sh
seqloom lab                     # list all claims and their verdicts
seqloom lab bottleneck          # test one claim; writes a folder with report.html and report.json
seqloom lab all --size full     # test all claims in the size for a GPU (--jobs 8: eight parallel processes)
```

The small size of a claim takes at most five minutes on two cores with `--jobs 2`. Measurements are cached, so an
interrupted command continues where it stopped. Claims that measure time run alone, after all others, and their
measurements are not reused on another machine. L0 to L4 are the five documents that make the claims. Paragraphs that begin with
"Interpretation" are our reading of the numbers; the experiments do not measure them.

**Rule.** {RULE} No seed is left out, but some experiments were changed in task, model or size after results of seeds 1 to
3 were known; `--seeds 11-13` selects seeds that influenced no design decision. The page reports claims that do not hold as
well.

`python -m bench.lab OUT` writes this page from the reports in [results/lab](results/lab).
"""


def collect(out: Path, results: Path) -> None:
    """Copy the reports of all claims, in every size, and keep the measurements of other seeds."""
    for size in SIZES:
        for name in claim_names():
            content = read_report(out / size / name / "report.json")
            if content is not None:
                path = results / size / f"{name}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                earlier = read_report(path)
                if earlier is not None:
                    content = with_other_seeds(content, earlier)
                text = json.dumps(content, indent=1, ensure_ascii=False)
                path.write_text(text + "\n", encoding="utf-8")


def with_other_seeds(content: Mapping[str, Any], earlier: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a report with the measurements of both reports. The newer one replaces equal seeds.

    The verdict, the table and the charts are computed from all measurements. If the two reports do
    not describe the same experiment, `content` is returned.
    """
    if any(content[key] != earlier[key] for key in ("setup", "settings", "size", "versions")):
        return content
    kept = [each for each in earlier["measurements"] if each["seed"] not in content["seeds"]]
    measurements = sorted([*kept, *content["measurements"]], key=itemgetter("seed"))
    report = rebuild_report({**content, "measurements": measurements}).to_json()
    return {**report, "versions": content["versions"]}


def write(docs: Path) -> None:
    """Write the page and its charts from the collected reports."""
    pictures = docs / "pictures" / "lab"
    pictures.mkdir(parents=True, exist_ok=True)
    sections, rows = [], []
    for name in claim_names():
        paths = [docs / "results" / "lab" / size / f"{name}.json" for size in SIZES]
        contents = [content for path in paths if (content := read_report(path)) is not None]
        reports = [rebuild_report(content) for content in contents]
        rows.append(_row(name, reports))
        if not reports:
            continue
        for number, chart in enumerate(reports[0].charts, 1):
            path = pictures / f"{name}-{number}.svg"
            path.write_text(render_svg(chart) + "\n", encoding="utf-8")
        sections.append(_section(reports, contents[0]["settings"]))
    head = "\n".join([f"| claim | {' | '.join(SIZES)} |", f"|{'---|' * (1 + len(SIZES))}", *rows])
    (docs / "lab.md").write_text("\n".join([TOP, head, *sections]), encoding="utf-8")


def served_reports(results: Path) -> str:
    """Return the largest report of each claim as JSON, without the single measurements."""
    reports = []
    for name in claim_names():
        paths = [results / size / f"{name}.json" for size in SIZES]
        contents = [content for path in paths if (content := read_report(path)) is not None]
        reports += [
            {key: value for key, value in content.items() if key != "measurements"}
            for content in contents[:1]
        ]
    lines = ",\n".join(json.dumps(report, ensure_ascii=False) for report in reports)
    return f"[\n{lines}\n]\n"


def _row(name: str, reports: Sequence[ClaimReport]) -> str:
    by_size = {report.size: f"**{report.verdict.state}**, {_seeds(report)}" for report in reports}
    cells = [by_size.get(size, "not yet run") for size in SIZES]
    return f"| {f'[{name}](#{name})' if reports else name} | {' | '.join(cells)} |"


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


def _section(reports: Sequence[ClaimReport], settings: str) -> str:
    """A claim with the verdicts of all sizes, and the charts and numbers of the largest."""
    report, *smaller = reports
    claim = report.claim
    parts = [
        f"\n## {claim.name}\n",
        f"{claim.sentence} *({claim.source})*\n",
        *(_verdict(each) for each in reports),
        *([f"Interpretation: {REASONS[claim.name]}\n"] if claim.name in REASONS else []),
        *(
            f"![{claim.name}](pictures/lab/{claim.name}-{number}.svg)\n"
            for number, _ in enumerate(report.charts, 1)
        ),
        *([f"Charts and numbers are those of the size {report.size}.\n"] if smaller else []),
        table(report.table),
        *(_published(comparison) for comparison in report.comparisons),
        f"{claim.setup} `{settings}`",
    ]
    return "\n".join(parts)


def _verdict(report: ClaimReport) -> str:
    context = f"size {report.size}, {_seeds(report)}, on {', '.join(report.devices)}"
    statements = "\n".join(f"- {reason}" for reason in report.verdict.reason.split("; "))
    return f"**{report.verdict.state}**, {context}:\n\n{statements}\n"


def _published(comparison: PublishedComparison) -> str:
    rows = [
        [figure.label, f"{figure.theirs:g}", f"{figure.ours:.4g}"] for figure in comparison.figures
    ]
    lead = f"Published: {comparison.what} ({comparison.where}). {comparison.summary}\n"
    return f"{lead}\n{table([['', 'published', 'here'], *rows])}"


def table(rows: list[list[str]]) -> str:
    """A Markdown table whose first row is the heading."""
    head, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *others, ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.lab",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path, nargs="?", help="output folder of `seqloom lab --out`")
    arguments = parser.parse_args()
    if arguments.out is not None:
        collect(arguments.out, DOCS / "results" / "lab")
    write(DOCS)
    SERVED_REPORTS.write_text(served_reports(DOCS / "results" / "lab"), encoding="utf-8")


if __name__ == "__main__":
    main()
