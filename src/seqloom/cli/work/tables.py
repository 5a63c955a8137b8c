"""Tables and bars for people, on stdout."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from seqloom.cli.output import colour_allowed
from seqloom.runs.predictor import ProgressCallback


def stdout_console() -> Console:
    """Rich text where it is read by a person, the same words without colour elsewhere."""
    return Console(
        file=sys.stdout,
        no_color=not colour_allowed(sys.stdout),
        highlight=False,
        markup=False,
        emoji=False,
    )


def draws_blocks() -> bool:
    """Can this terminal show more than ASCII?"""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Table:
    """The first column is words, the others are numbers."""
    result = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for place, head in enumerate(heads):
        result.add_column(head, justify="right" if place else "left")
    for row in rows:
        result.add_row(*row)
    return result


@contextmanager
def bar(words: str) -> Iterator[ProgressCallback | None]:
    """A bar on stderr for work of known size; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    console = Console(stderr=True, no_color=not colour_allowed(sys.stderr))
    columns = (TextColumn(words), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(words, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
