"""Tables, consoles and progress bars in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from seqloom.cli.output import allows_colour, shows_progress

if TYPE_CHECKING:
    from seqloom.runs.predictor import ProgressCallback

_METRIC_LABELS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "chrf2": "chrF2",
    "ter": "TER",
    "macro-f1": "macro F1",
}


def stdout_console() -> Console:
    """Return a rich console on stdout. It prints text literally, and in colour only if allowed."""
    return Console(
        file=sys.stdout,
        no_color=not allows_colour(sys.stdout),
        highlight=False,
        markup=False,
        emoji=False,
    )


def stderr_console() -> Console:
    """Return a rich console on stderr. It prints text literally, and in colour only if allowed."""
    return Console(
        stderr=True, no_color=not allows_colour(sys.stderr), highlight=False, markup=False
    )


def supports_unicode() -> bool:
    """True if the encoding of stdout is a Unicode encoding."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def make_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table without lines. The first column is left-aligned, the others right-aligned."""
    table = Table(box=None, pad_edge=False)
    for column, header in enumerate(headers):
        table.add_column(header, justify="right" if column else "left")
    for row in rows:
        table.add_row(*row)
    return table


def metric_label(name: str) -> str:
    """Return the display name of a metric: "BLEU" for "bleu", "exact match" for "exact_match"."""
    return _METRIC_LABELS.get(name, name.replace("_", " ").replace("-", " "))


@contextmanager
def progress_bar(description: str) -> Iterator[ProgressCallback | None]:
    """Context manager that shows a progress bar on stderr while the block runs.

    Yields a function with the parameters (done, total), which updates the bar. If stderr is not a
    terminal, or with --quiet, shows no bar and yields None.
    """
    if not shows_progress():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr_console(), transient=True) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
