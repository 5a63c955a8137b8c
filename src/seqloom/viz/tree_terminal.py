"""A recorded search in a terminal: what stood to choose at each step, and what became of it.

step     token      p   log p   score
   1  ●  I        .93   -0.08   -0.08   kept
      ·  It      <.01   -5.40   -5.40   outscored
"""

from collections import Counter
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from seqloom.decoding.record import Candidate, Fate
from seqloom.runs.prediction import Prediction
from seqloom.runs.question import Changed, Searched
from seqloom.viz.tree_layout import drawn, share
from seqloom.viz.words import one_line

_MARKS = {Fate.KEPT: "●", Fate.FINISHED: "■", Fate.STOPPED: "□", Fate.DROPPED: "·"}
_LETTERS = {Fate.KEPT: "o", Fate.FINISHED: "*", Fate.STOPPED: "+", Fate.DROPPED: "."}
_STYLES = {Fate.KEPT: "", Fate.FINISHED: "cyan", Fate.STOPPED: "blue", Fate.DROPPED: "dim"}
_LONGEST = 44
"""Cells of the text so far: its end says most."""


def draw_steps(searched: Searched, *, dropped: int | None = 3, ascii_only: bool = False) -> Table:
    """A table of the steps, with the best dropped candidates of each; None: with all of them."""
    record = searched.record
    best = record.best()
    winning = set(best[0]) if best else set()
    table = _table(
        ("step", ""), ("", ""), ("token", ""), ("p", "r"), ("log p", "r"), ("score", "r")
    )
    table.add_column("", no_wrap=True)
    table.add_column("so far")  # in a narrow terminal it is shortened, and the numbers are not
    for number, step in enumerate(record.steps):
        shown = drawn(step, len(step) if dropped is None else dropped)
        for line, place in enumerate(shown):
            one = step[place]
            style = "bold" if (number, place) in winning else _STYLES[one.fate]
            cells = _cells(searched, one, ascii_only)
            so_far = _tail(searched.written[number][place], ascii_only)
            head = "" if line else str(number + 1)
            last = Text(so_far, style, no_wrap=True, overflow="ellipsis")
            table.add_row(head, *(Text(cell, style) for cell in cells), last)
        rest = Counter(str(one.reason) for place, one in enumerate(step) if place not in set(shown))
        if rest:
            words = ", ".join(f"{count} more {reason}" for reason, count in rest.most_common())
            table.add_row("", "", "", "", "", "", Text(words, "dim"), "")
    return table


def _cells(searched: Searched, one: Candidate, ascii_only: bool) -> tuple[str, ...]:
    marks = _LETTERS if ascii_only else _MARKS
    fate = str(one.fate if one.reason is None else one.reason)
    return (
        marks[one.fate],
        one_line(searched.pieces[one.token], 20, ascii_only),
        share(one.log_probability),
        f"{one.total:.2f}",
        f"{one.score:.2f}",
        f"stopped: {fate}" if one.fate is Fate.STOPPED else fate,
    )


def _tail(text: str, ascii_only: bool) -> str:
    mark = "~" if ascii_only else "…"
    cut = text if len(text) <= _LONGEST else f"{mark}{text[1 - _LONGEST :]}"
    return one_line(cut, _LONGEST, ascii_only)


def draw_outputs(outputs: Sequence[Prediction]) -> Table:
    """The outputs, best first, with their scores; equal texts are found by different tokens."""
    table = _table(("", "r"), ("score", "r"), ("log p", "r"))
    table.add_column("output")
    seen: dict[str, int] = {}
    for rank, output in enumerate(outputs, start=1):
        first = seen.setdefault(output.text, rank)
        note = "" if output.finished else "   (without END)"
        note += "" if first == rank else f"   (the text of {first}, in other tokens)"
        style = "bold" if rank == 1 else ""
        total = sum(output.log_probabilities)
        words = Text(one_line(output.text, 10_000, False), style)
        table.add_row(
            str(rank), f"{output.score:.3f}", f"{total:.2f}", words.append(note, "dim not bold")
        )
    return table


def draw_change(change: Changed, *, ascii_only: bool = False) -> Table:
    """The output and what became of it, piece by piece, with the probability of each."""
    table = _table(("step", "r"), ("as it was", ""), ("p", "r"), ("instead", ""), ("p", "r"))
    ours, theirs = change.original, change.changed
    for step in range(max(len(ours.pieces), len(theirs.pieces))):
        cells = []
        for output in (ours, theirs):
            there = step < len(output.pieces)
            cells.append(one_line(output.pieces[step], 24, ascii_only) if there else "")
            cells.append(share(output.log_probabilities[step]) if there else "")
        same = step + 1 < change.step
        style = "dim" if same else "bold" if step + 1 == change.step else ""
        table.add_row(str(step + 1), *(Text(cell, style) for cell in cells))
    return table


def _table(*heads: tuple[str, str]) -> Table:
    """heads: words, and "r" for numbers."""
    table = Table(box=None, pad_edge=False)
    for words, side in heads:
        table.add_column(words, justify="right" if side == "r" else "left", no_wrap=True)
    return table
