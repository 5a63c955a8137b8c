"""The progress bar of commands that read many lines: done, total, rate and remaining time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from seqloom.cli.output import is_quiet
from seqloom.cli.tables import stderr_console

if TYPE_CHECKING:
    from rich.progress import Task

BAR_WIDTH = 20
"""Width of the bar in columns, as in the display of `train`."""


class ShowProgress(Protocol):
    """Type of the functions that update a progress bar."""

    def __call__(self, done: int, total: int | None, description: str | None = None, /) -> None:
        """Update the bar.

        done:        number of finished items
        total:       number of all items; None if it is unknown
        description: new text in front of the bar. Default: the text stays the same
        """
        ...


def _show_nothing(done: int, total: int | None, description: str | None = None, /) -> None:
    pass


def shows_progress(*, prints: bool = False) -> bool:
    """Return True if a progress bar is shown: stderr is a terminal, and --quiet is not given.

    prints: True if the command writes to stdout while it runs. If stdout is a terminal too, no bar
            is shown, because it would mix with the output. Default: False
    """
    return not is_quiet() and sys.stderr.isatty() and not (prints and sys.stdout.isatty())


@contextmanager
def progress_bar(
    description: str, unit: str = "sentences", *, prints: bool = False
) -> Iterator[ShowProgress]:
    """Context manager that shows a progress bar on stderr while the block runs.

    Yields a function that updates the bar. If no bar is shown, for example with --quiet, this
    function does nothing.

    prints: True if the command writes to stdout while it runs. Default: False
    """
    if not shows_progress(prints=prints):
        yield _show_nothing
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    class Status(TextColumn):
        def __init__(self) -> None:
            super().__init__("")

        def render(self, task: Task) -> str:  # type: ignore[override]
            return format_status(task.completed, task.total, unit, task.speed, task.time_remaining)

    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=BAR_WIDTH),
        Status(),
        console=stderr_console(),
        transient=True,
        # rich would send everything that is written to stdout to stderr.
        redirect_stdout=False,
    )
    with progress:
        task = progress.add_task(description, total=None)

        def show(done: int, total: int | None, description: str | None = None, /) -> None:
            progress.update(task, completed=done, total=total, description=description)

        yield show


def format_status(
    done: float, total: float | None, unit: str, rate: float | None, seconds_left: float | None
) -> str:
    """Return the numbers beside the bar: "120/1,000 lines  45.1 lines/s  0:19 left".

    Numbers that are not known yet are left out.
    """
    if not done and total is None:
        return ""
    fields = [f"{done:,.0f} {unit}" if total is None else f"{done:,.0f}/{total:,.0f} {unit}"]
    if rate:
        fields.append(f"{rate:,.0f} {unit}/s" if rate >= 100 else f"{rate:.1f} {unit}/s")
    if total is not None and seconds_left is not None and done < total:
        fields.append(f"{format_duration(seconds_left)} left")
    return "  ".join(fields)


def format_duration(seconds: float) -> str:
    """Return minutes:seconds, or hours:minutes:seconds."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def portion_progress(
    show: ShowProgress, finished: int, total: int | None
) -> Callable[[int, int], None]:
    """Return a callback that updates the bar while one portion of the input is processed.

    The callback takes two numbers: how many items of this portion are finished, and how many items
    the portion has.

    finished: number of items in earlier portions
    total:    number of items in all portions; None if it is unknown
    """
    return lambda done, _: show(finished + done, total)


def count_lines(files: Sequence[Path] | None, *, prints: bool = False) -> int | None:
    """Return the number of lines of the files, as the total of a progress bar.

    Returns None if no bar is shown. Also returns None if standard input is read, because the number
    of its lines is unknown.

    prints: True if the command writes to stdout while it runs. Default: False
    """
    from seqloom.cli.inputs import STDIN
    from seqloom.data.readers.text_files import count_file_lines

    if not files or STDIN in files or not shows_progress(prints=prints):
        return None
    return sum(count_file_lines(path) for path in files)
