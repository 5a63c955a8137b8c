"""Scores of a run, and whether another is really better."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from seqloom.cli.output import put, tell, warn
from seqloom.cli.work.decoding import changed_decoding
from seqloom.cli.work.tables import bar, stdout_console, table
from seqloom.cli.work.watch import named
from seqloom.core.errors import StorageError
from seqloom.data.example import Split
from seqloom.metrics.significance import Comparison
from seqloom.runs.evaluate import Report, compare_reports
from seqloom.runs.run import load

EXAMPLES = 5


def evaluate(
    folder: Path,
    against: Path | None,
    split: Split,
    beam: int | None,
    overrides: Sequence[str],
    as_json: bool,
) -> None:
    folders = [folder] if against is None else [against, folder]
    reports = [_report(each, split, beam, overrides) for each in folders]
    comparisons = compare_reports(*reports) if against is not None else []
    if as_json:
        record = reports[-1].to_json()
        if against is not None:
            record["against"] = reports[0].to_json()
            record["comparisons"] = [asdict(each) for each in comparisons]
        put(json.dumps(record, ensure_ascii=False, indent=2))
        return
    console = stdout_console()
    for report in reports:
        show_report(console, report)
    if against is not None:
        _show_comparisons(console, comparisons, reports)


def _report(folder: Path, split: Split, beam: int | None, overrides: Sequence[str]) -> Report:
    run = load(folder)
    decoding = changed_decoding(run.config, overrides, beam)
    with bar(f"{folder}") as advance:
        report = run.evaluate(split, decoding=decoding, advance=advance)
    try:
        tell(f"outputs and scores are in {report.save(folder)}")
    except StorageError as error:
        warn(f"outputs and scores could not be saved: {error}")
    return report


def show_report(console: Console, report: Report) -> None:
    """Scores with their signatures, scores by length, examples."""
    title = f"{report.run}: {report.sentences:,} sentences of {report.split}"
    rows = [(named(score.name), f"{score.value:.4g}") for score in report.scores]
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(table(("score", "value"), rows))
    for score in report.scores:
        if score.signature:
            console.print(Text(f"{named(score.name)}: {score.signature}", "dim"), soft_wrap=True)
    if report.cut_off:
        console.print(f"{report.cut_off:,} outputs stopped at the length limit")
    if len(report.by_length) > 1:
        head = named(report.by_length[0].score.name)
        lengths = [
            (_range(each.shortest, each.longest), f"{each.sentences:,}", f"{each.score.value:.4g}")
            for each in report.by_length
        ]
        console.print()
        console.print(table(("words in source", "sentences", head), lengths))
    console.print()
    show_examples(console, report, EXAMPLES)


def _range(shortest: int, longest: int) -> str:
    return str(shortest) if shortest == longest else f"{shortest} to {longest}"


def show_examples(console: Console, report: Report, count: int) -> None:
    """Some examples, spread evenly over the split."""
    total = len(report.outputs)
    for place in range(0, total, max(total // count, 1))[:count]:
        example = report.examples[place]
        console.print(Text.assemble(("source     ", "dim"), example.source), soft_wrap=True)
        console.print(Text.assemble(("reference  ", "dim"), example.target), soft_wrap=True)
        console.print(Text.assemble(("output     ", "dim"), report.outputs[place]), soft_wrap=True)
        console.print()


def _show_comparisons(
    console: Console, comparisons: Sequence[Comparison], reports: Sequence[Report]
) -> None:
    rows = [
        (
            named(each.metric),
            f"{each.baseline.score:.2f} ± {each.baseline.interval:.2f}",
            f"{each.system.score:.2f} ± {each.system.interval:.2f}",
            f"{each.delta:+.2f}",
            f"{each.p_value:.4f}",
        )
        for each in comparisons
    ]
    console.print(table(("", reports[0].run, reports[1].run, "difference", "p"), rows))
    console.print(
        Text("paired bootstrap; p below 0.05: the difference is hardly chance", "dim"),
        soft_wrap=True,
    )
