"""The command `seqloom runs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from seqloom.cli.options import Json, argument
from seqloom.cli.output import print_json, print_message, print_warning
from seqloom.core.errors import NotFoundError

if TYPE_CHECKING:
    from seqloom.runs.listing import ListedRun


def runs(
    folder: Annotated[Path, argument("[FOLDER]", "Folder to search. Default: runs.")] = Path(
        "runs"
    ),
    json: Json = False,
) -> None:
    """List the runs in a folder and below it, the latest first."""
    from seqloom.runs.listing import find_runs, read_listed_run

    if not folder.is_dir():
        raise NotFoundError(
            f"{folder}: no such folder. Give a folder that contains runs, or train a model, for "
            "example with `seqloom demo`."
        )
    found = [read_listed_run(path) for path in find_runs(folder)]
    found.sort(key=lambda run: run.changed or "", reverse=True)
    if json:
        print_json([run.to_json() for run in found], indent=2)
        return
    if not found:
        print_message(f"{folder}: contains no runs")
        return
    _print_table(found)
    for run in found:
        if run.problem is not None:
            print_warning(f"{run.folder}: the recipe cannot be read: {run.problem}")


def _print_table(found: list[ListedRun]) -> None:
    from seqloom.cli.tables import metric_label, stdout_console

    console = stdout_console()
    rows = [("run", "task", "data", "steps", "status", "best on dev", "date (UTC)")]
    for run in found:
        best = ""
        if run.best is not None and run.score is not None:
            best = f"{metric_label(run.score)} {run.best:.4g}"
        steps = f"{run.step:,}" if run.steps is None else f"{run.step:,}/{run.steps:,}"
        date = (run.changed or "")[:16].replace("T", " ")
        rows.append((run.folder, run.task or "?", run.data or "?", steps, run.status, best, date))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print("  ".join(cells).rstrip(), soft_wrap=True)
