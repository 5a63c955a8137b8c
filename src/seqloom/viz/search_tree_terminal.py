"""Print a traced search in a terminal: the candidates of each step and their outcomes.

step     token      p   log p   score
   1  ●  I        .93   -0.08   -0.08   kept
      ·  It      <.01   -5.40   -5.40   not in the top k
"""

from collections.abc import Sequence

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from seqloom.analysis.search_inspection import InspectedSearch, TokenReplacement
from seqloom.decoding.trace import Fate, TracedCandidate
from seqloom.inference.prediction import Prediction
from seqloom.viz.search_tree import (
    DROPPED_PER_STEP,
    candidates_to_draw,
    format_probability,
    hidden_reasons,
)
from seqloom.viz.terminal_format import fit_to_line

_MARKS = {Fate.KEPT: "●", Fate.FINISHED: "■", Fate.STOPPED: "□", Fate.DROPPED: "·"}
_ASCII_MARKS = {Fate.KEPT: "o", Fate.FINISHED: "*", Fate.STOPPED: "+", Fate.DROPPED: "."}
_STYLES = {Fate.KEPT: "", Fate.FINISHED: "cyan", Fate.STOPPED: "blue", Fate.DROPPED: "dim"}
_MAX_PREFIX_LENGTH = 44
"""Maximum number of characters in the column "text so far". Longer texts are cut at the start."""


def draw_search_steps(
    searched: InspectedSearch, *, dropped: int | None = DROPPED_PER_STEP, ascii_only: bool = False
) -> Table:
    """Return a table of the candidates of each step.

    Args:
        dropped: maximum number of dropped candidates to show at each step. None shows all of them.
    """
    record = searched.record
    best = record.best()
    best_path = set(best[0]) if best else set()
    table = _create_table("step", "", "token", ">p", ">log p", ">score", "")
    # In a narrow terminal, rich shortens the following column, but not the columns of numbers.
    table.add_column("text so far")
    for number, step in enumerate(record.steps):
        drawn = candidates_to_draw(step, len(step) if dropped is None else dropped)
        for line, index in enumerate(drawn):
            candidate = step[index]
            style = "bold" if (number, index) in best_path else _STYLES[candidate.fate]
            cells = _candidate_cells(searched, candidate, ascii_only)
            prefix = _shorten_prefix(searched.written[number][index], ascii_only)
            table.add_row(
                "" if line else str(number + 1),
                *(Text(cell, style) for cell in cells),
                Text(prefix, style, no_wrap=True, overflow="ellipsis"),
            )
        hidden = hidden_reasons(step, drawn)
        if hidden:
            note = ", ".join(f"{count} more {reason}" for reason, count in hidden.most_common())
            table.add_row("", "", "", "", "", "", Text(note, "dim"), "")
    return table


def _candidate_cells(
    searched: InspectedSearch, candidate: TracedCandidate, ascii_only: bool
) -> tuple[str, ...]:
    marks = _ASCII_MARKS if ascii_only else _MARKS
    fate = str(candidate.fate if candidate.reason is None else candidate.reason)
    return (
        marks[candidate.fate],
        fit_to_line(searched.pieces[candidate.token], 20, ascii_only),
        format_probability(candidate.log_probability),
        f"{candidate.total:.2f}",
        f"{candidate.score:.2f}",
        f"stopped: {fate}" if candidate.fate is Fate.STOPPED else fate,
    )


def _shorten_prefix(text: str, ascii_only: bool) -> str:
    mark = "~" if ascii_only else "…"
    if len(text) > _MAX_PREFIX_LENGTH:
        text = f"{mark}{text[1 - _MAX_PREFIX_LENGTH :]}"
    return fit_to_line(text, _MAX_PREFIX_LENGTH, ascii_only)


def draw_outputs(outputs: Sequence[Prediction]) -> Table:
    """Return a table of the outputs and their scores, best first.

    Different token sequences can decode to the same text; the table notes such duplicates.
    """
    table = _create_table(">", ">score", ">log p")
    table.add_column("output")
    first_rank: dict[str, int] = {}
    for rank, output in enumerate(outputs, start=1):
        first = first_rank.setdefault(output.text, rank)
        note = "" if output.finished else "   (without END)"
        note += "" if first == rank else f"   (same text as {first}, different tokens)"
        text = Text(fit_to_line(output.text, 10_000, False), "bold" if rank == 1 else "")
        table.add_row(
            str(rank),
            f"{output.score:.3f}",
            f"{sum(output.log_probabilities):.2f}",
            text.append(note, "dim not bold"),
        )
    return table


def draw_change(change: TokenReplacement, *, ascii_only: bool = False) -> Table:
    """Return a table that compares an output before and after one of its tokens was replaced."""
    table = _create_table(">step", "original", ">p", "changed", ">p")
    outputs = (change.original, change.changed)
    for step in range(max(len(output.pieces) for output in outputs)):
        cells = []
        for output in outputs:
            exists = step < len(output.pieces)
            cells.append(fit_to_line(output.pieces[step], 24, ascii_only) if exists else "")
            cells.append(format_probability(output.log_probabilities[step]) if exists else "")
        is_shared_prefix = step + 1 < change.step
        style = "dim" if is_shared_prefix else "bold" if step + 1 == change.step else ""
        table.add_row(str(step + 1), *(Text(cell, style) for cell in cells))
    return table


def _create_table(*headers: str) -> Table:
    """Return an empty table. A header that starts with ">" aligns its column to the right."""
    table = Table(box=None, pad_edge=False)
    for header in headers:
        side: JustifyMethod = "right" if header.startswith(">") else "left"
        table.add_column(header.removeprefix(">"), justify=side, no_wrap=True)
    return table
