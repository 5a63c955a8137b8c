"""The command `seqloom lab`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.padding import Padding
from rich.text import Text

from seqloom.cli.options import Json, argument, option
from seqloom.cli.output import print_error, print_json, print_message, shows_progress
from seqloom.cli.tables import make_table, stderr_console, stdout_console

if TYPE_CHECKING:
    from seqloom.lab.reporting.report import ClaimReport
    from seqloom.lab.running.runner import Experiment, TrialJob

MAX_SEEDS = 1000
PLAIN_INTERVAL = 20.0
"""If nothing was printed for this many seconds, the plain display prints a progress line."""
VERDICT_STYLES = {"confirmed": "bold blue", "refuted": "bold yellow", "undecided": "bold"}


def lab(
    claims: Annotated[
        list[str] | None,
        argument("[CLAIM]...", "Claims to test, or all. Default: list the claims."),
    ] = None,
    size: Annotated[
        Literal["tiny", "small", "full"],
        option(
            "SIZE",
            "Size of the experiment. small: minutes on two cores; full: for a GPU; tiny: "
            "only checks that the experiment runs.",
        ),
    ] = "small",
    seeds: Annotated[
        str | None,
        option(
            "N|FIRST-LAST",
            "Number of seeds (3 means seeds 1 to 3), or a range such as 11-13. Default: the "
            "number that the verdict on a claim needs, which is 3 for most claims.",
        ),
    ] = None,
    out: Annotated[Path, option("FOLDER", "Folder to write the reports to.")] = Path("runs/lab"),
    jobs: Annotated[
        int, option("N", "Number of measurements to run in parallel.", min=1, max=256)
    ] = 1,
    json: Json = False,
) -> None:
    """Test claims from lectures on sequence models: an experiment and a verdict for each claim.

    Each report is a folder with report.html and report.json. Measurements that already exist are
    reused. Measured times are reused only on the same machine.
    """
    seed_range = None if seeds is None else _parse_seeds(seeds)
    if not claims:
        _list_claims(out, json)
        return

    from seqloom.lab.registry import find_claim, select_claims

    names = select_claims(claims)

    from seqloom.lab.reporting.report_files import write_report
    from seqloom.lab.running.runner import Experiment, list_jobs, run_jobs

    experiments = {
        Experiment(out, name, size): seed_range or range(1, find_claim(name).min_seeds + 1)
        for name in names
    }
    reports: list[ClaimReport] = []
    failed: set[Experiment] = set()
    # With one job at a time, finish one claim after the other, so that each report is written as
    # early as possible. With several jobs, schedule all claims together, so that no process is
    # idle.
    for group in [[experiment] for experiment in experiments] if jobs == 1 else [list(experiments)]:
        measurements = [
            job for experiment in group for job in list_jobs(experiment, experiments[experiment])
        ]
        with _measurement_display(len(measurements)) as show:
            errors = run_jobs(measurements, jobs, show)
        for job, error in errors.items():
            print_error(type(error)(f"{job.description}: {error}"))
            failed.add(job.experiment)
        for experiment in group:
            if experiment not in failed:
                reports.append(write_report(experiment, experiments[experiment]))
                if not json:
                    _print_report(reports[-1], experiment)
    if json:
        print_json([report.to_json() for report in reports], indent=2)
    raise typer.Exit(1 if failed else 0)


def _parse_seeds(value: str) -> range:
    """ "3" -> seeds 1 to 3; "11-13" -> seeds 11 to 13"""
    match = re.fullmatch(r"(?:(\d{1,9})-)?(\d{1,9})", value.strip())
    if match is not None:
        first, last = int(match[1] or 1), int(match[2])
        if 1 <= first <= last < first + MAX_SEEDS:
            return range(first, last + 1)
    raise typer.BadParameter(
        f"'{value}': give a number of seeds, for example 3, or a range, for example 11-13. The "
        f"maximum is {MAX_SEEDS:,} seeds.",
        param_hint="--seeds",
    )


def _list_claims(out: Path, json: bool) -> None:
    """Print the name and the text of each claim, and the verdicts of its existing reports."""
    from seqloom.lab.registry import claim_names, find_claim
    from seqloom.lab.reporting.report_files import read_report

    console = stdout_console()
    records = []
    for name in claim_names():
        claim = find_claim(name)
        reports = {
            size: report
            for size in ("small", "full")
            if (report := read_report(out / size / name / "report.json")) is not None
        }
        if json:
            verdicts = {
                size: {"verdict": report["verdict"], "seeds": report["seeds"]}
                for size, report in reports.items()
            }
            records.append(
                {
                    "claim": claim.name,
                    "sentence": claim.sentence,
                    "source": claim.source,
                    "reports": verdicts,
                }
            )
        else:
            console.print(Text.assemble((claim.name, "bold"), "  ", *_verdict_texts(reports)))
            console.print(Padding(Text(claim.sentence), (0, 0, 0, 2)))
    if json:
        print_json(records, indent=2)
    else:
        print_message("test a claim with: seqloom lab NAME, or every claim with: seqloom lab all")


def _verdict_texts(reports: Mapping[str, Mapping[str, Any]]) -> list[Text]:
    if not reports:
        return [Text("not tested", "dim")]
    texts = []
    for size, report in reports.items():
        verdict, count = report["verdict"]["state"], len(report["seeds"])
        texts.append(Text(verdict, VERDICT_STYLES.get(verdict, "bold")))
        texts.append(Text(f" ({size}, {count} seed{'' if count == 1 else 's'})  ", "dim"))
    return texts


def _print_report(report: ClaimReport, experiment: Experiment) -> None:
    console = stdout_console()
    verdict = report.verdict
    title = Text.assemble(
        (report.claim.name, "bold"), "  ", (verdict.state, VERDICT_STYLES[verdict.state])
    )
    console.print(title)
    console.print(Padding(Text(report.claim.sentence), (0, 0, 0, 2)))
    for reason in verdict.reason.split("; "):
        console.print(Padding(Text(f"· {reason}", "dim"), (0, 0, 0, 2)))
    headers, *rows = report.table
    console.print(Padding(make_table(headers, rows), (1, 0, 1, 2)))
    for comparison in report.comparisons:
        console.print(Padding(Text(f"{comparison.where}: {comparison.summary}"), (0, 0, 0, 2)))
    print_message(f"  {experiment.folder / 'report.html'}")


@contextmanager
def _measurement_display(total: int) -> Iterator[Callable[[TrialJob, str, float], None]]:
    """Context manager. Yields a function to call when a measurement makes progress.

    The arguments of the function are the measurement, its status as text, and its finished share (0
    to 1). On a terminal, the function updates a progress bar. Otherwise it prints lines.

    total: number of measurements
    """
    if not shows_progress():
        yield _PlainDisplay(total)
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[done]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr_console(), transient=True) as progress:
        task = progress.add_task("", total=total, done="")
        shares: dict[TrialJob, float] = {}

        def show(job: TrialJob, status: str, share: float) -> None:
            shares[job] = share
            finished = sum(share == 1.0 for share in shares.values())
            progress.update(
                task,
                description=f"{job.description}, {status}",
                completed=sum(shares.values()),
                done=f"{finished}/{total}",
            )

        yield show


class _PlainDisplay:
    """Prints a line for each finished measurement.

    If nothing was printed for PLAIN_INTERVAL seconds, prints the progress of a running measurement.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.last_printed = time.monotonic()

    def __call__(self, job: TrialJob, status: str, share: float) -> None:
        if share == 1.0:
            self.done += 1
            print_message(f"{self.done}/{self.total}  {job.description}: {status}")
        elif time.monotonic() - self.last_printed > PLAIN_INTERVAL:
            print_message(f"{self.done}/{self.total}  {job.description}: {status} {share:.0%}")
        else:
            return
        self.last_printed = time.monotonic()
