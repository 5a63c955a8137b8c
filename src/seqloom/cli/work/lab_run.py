"""Claims put to the test, watched."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from seqloom.cli.output import colour_allowed, complain, put, tell
from seqloom.cli.work.lab import COLOURS
from seqloom.cli.work.tables import stdout_console, table
from seqloom.lab.claim import Size
from seqloom.lab.laboratory import Job, Place, Watch, carry_out, jobs_of
from seqloom.lab.report import Report
from seqloom.lab.writing import write_report

PLAIN_EVERY = 20.0
"""Seconds between two plain lines about what is going on."""


def lab_run(
    names: Sequence[str], size: Size, seeds: range, out: Path, at_once: int, as_json: bool
) -> int:
    """Measure, judge and write a report for each claim; 1 if one of them could not be tried."""
    places = [Place(out, name, size) for name in names]
    reports: list[Report] = []
    failed: set[Place] = set()
    # One by one, each report comes as early as it can; side by side, no process waits for another.
    for group in [[place] for place in places] if at_once == 1 else [places]:
        jobs = [job for place in group for job in jobs_of(place, seeds)]
        with _watched(len(jobs)) as watch:
            trouble = carry_out(jobs, at_once, watch)
        for job, error in trouble.items():
            complain(type(error)(f"{job.words}: {error}"))
            failed.add(job.place)
        for place in group:
            if place not in failed:
                reports.append(write_report(place, seeds))
                if not as_json:
                    _show(reports[-1], place)
    if as_json:
        put(json.dumps([one.to_json() for one in reports], indent=2, ensure_ascii=False))
    return 1 if failed else 0


def _show(report: Report, place: Place) -> None:
    console = stdout_console()
    verdict = report.verdict
    console.print(
        Text.assemble((report.claim.name, "bold"), "  ", (verdict.state, COLOURS[verdict.state]))
    )
    console.print(Padding(Text(report.claim.sentence), (0, 0, 0, 2)))
    for reason in verdict.reason.split("; "):
        console.print(Padding(Text(f"· {reason}", "dim"), (0, 0, 0, 2)))
    heads, *rows = report.table
    console.print(Padding(table(heads, rows), (1, 0, 1, 2)))
    for comparison in report.comparisons:
        console.print(Padding(Text(f"{comparison.where}: {comparison.words}"), (0, 0, 0, 2)))
    tell(f"  {place.folder / 'report.html'}")


@contextmanager
def _watched(total: int) -> Iterator[Watch]:
    """A bar with the time left in a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _PlainWatch(total)
        return
    console = Console(stderr=True, no_color=not colour_allowed(sys.stderr), highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[done]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, done="")
        shares: dict[Job, float] = {}

        def watch(job: Job, words: str, share: float) -> None:
            shares[job] = share
            complete = sum(one == 1.0 for one in shares.values())
            progress.update(
                task,
                description=f"{job.words}, {words}",
                completed=sum(shares.values()),
                done=f"{complete}/{total}",
            )

        yield watch


class _PlainWatch:
    """A line when something is done, and now and then one about what is going on."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.told = time.monotonic()

    def __call__(self, job: Job, words: str, share: float) -> None:
        if share == 1.0:
            self.done += 1
            tell(f"{self.done}/{self.total}  {job.words}: {words}")
        elif time.monotonic() - self.told > PLAIN_EVERY:
            tell(f"{self.done}/{self.total}  {job.words}: {words} {share:.0%}")
        else:
            return
        self.told = time.monotonic()
