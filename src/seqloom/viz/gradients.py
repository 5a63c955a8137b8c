"""How much gradient reaches each step: bars in a terminal, and a picture in a file."""

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from seqloom.core.extras import import_optional
from seqloom.core.storage import write_file
from seqloom.inside.gradients import Profile, Steps, Trace
from seqloom.viz.attention import picture_format
from seqloom.viz.words import column, one_line, padded

_BAR = 36
_LONGEST = 18
"""Cells of a word."""
_STYLES = ("blue", "cyan")
_COLOURS = ("#2171b5", "#9ecae1")
_WHOLE = "#08306b"
_FILLED, _PLAIN = "█▒", "#:"
SIDES = {"source": "what is read", "target": "what goes into the decoder"}
MEANINGS = {
    "chain": "chain (the state handed over)",
    "attention": "attention (looked at)",
    "own": "from its own answer",
    "later": "from later answers",
}


def draw_gradients(found: Trace | Profile, *, ascii_only: bool = False) -> Text:
    """Both sides under each other: the norms in numbers, and the two parts as one bar."""
    picture = Text()
    picture.append(f"{headline(found)}\n", "bold")
    for name, title in SIDES.items():
        steps: Steps = getattr(found, name)
        if steps.labels and any(steps.whole):
            counts = found.counts[name] if isinstance(found, Profile) else ()
            picture.append(f"\n{title}\n", "bold blue")
            picture.append(_table(steps, counts, ascii_only))
    return picture


def headline(found: Trace | Profile) -> str:
    """Of which loss these are the gradients."""
    what = "all answers" if found.step is None else f"answer {found.step}"
    if isinstance(found, Profile):
        return f"gradients of {what}, the mean of {found.sentences:,} sentences"
    piece = "" if found.step is None else f" ({found.output[found.step - 1].removeprefix('▁')})"
    return f"gradients of {what}{piece}, loss {found.loss:.3f}"


def _table(steps: Steps, counts: Sequence[int], ascii_only: bool) -> Text:
    """A line a step; a profile's say from how many sentences they are."""
    words = [one_line(_readable(label), _LONGEST, ascii_only) for label in steps.labels]
    if counts:
        words = [f"{word} from the end" if word != "0" else "the end" for word in words]
    margin = max(map(cell_len, words))
    columns = {**steps.parts, "whole": steps.whole}
    entries = {name: column(values) for name, values in columns.items()}
    if counts:
        entries["sentences"] = [str(count) for count in counts]
    widths = {name: max(len(name), *map(len, values)) for name, values in entries.items()}
    picture = Text("  " + " " * margin)
    for place, name in enumerate(entries):
        style = _STYLES[place] if place < len(steps.parts) else "dim"
        picture.append("   " + name.rjust(widths[name]), style)
    picture.append("\n")
    bars = _bars_of(steps, ascii_only)
    for row, word in enumerate(words):
        picture.append("  " + padded(word, margin))
        for name, values in entries.items():
            picture.append("   " + values[row].rjust(widths[name]))
        picture.append("  ")
        picture.append(bars[row])
        picture.rstrip()
        picture.append("\n")
    return picture


def _bars_of(steps: Steps, ascii_only: bool) -> list[Text]:
    """The two parts of every step, one behind the other; the longest bar is as long as may be."""
    marks = _PLAIN if ascii_only else _FILLED
    rows = list(zip(*steps.parts.values(), strict=True))
    most = max(map(sum, rows)) or 1.0
    bars = []
    for row in rows:
        bar = Text()
        for norm, mark, style in zip(row, marks, _STYLES, strict=True):
            bar.append(mark * round(norm / most * _BAR), style)
        bars.append(bar)
    return bars


def _readable(piece: str) -> str:
    return piece.removeprefix("▁") or piece


def save_gradients(path: Path, found: Trace | Profile) -> None:
    """Both sides beside each other; the suffix is the format."""
    kind = picture_format(path)
    figures = import_optional("matplotlib.figure", "plots", "drawing gradients")
    shown = [name for name in SIDES if any(getattr(found, name).whole)]
    sizes = [max(len(getattr(found, name).labels), 6) for name in shown]
    width = min(max(0.42 * sum(sizes) + 2.5, 7.0), 24.0)
    figure = figures.Figure(figsize=(width, 4.2), layout="constrained")
    grid = figure.subplots(1, len(shown), squeeze=False, width_ratios=sizes)[0]
    for axes, name in zip(grid, shown, strict=True):
        if isinstance(found, Profile):
            _draw_curves(axes, getattr(found, name))
        else:
            _draw_bars(axes, getattr(found, name))
        axes.set_title(SIDES[name], fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    grid[0].set_ylabel("norm of the gradient")
    figure.suptitle(headline(found), fontsize=12, parse_math=False)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A font without some script draws boxes for it: still a picture, no reason to stop.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format=kind, dpi=160)
    write_file(path, buffer.getvalue())


def _draw_bars(axes: Any, steps: Steps) -> None:
    """Two bars a step, and a mark for the norm of their sum."""
    places = range(len(steps.labels))
    for part, (name, colour) in enumerate(zip(steps.parts, _COLOURS, strict=True)):
        moved = [place + 0.4 * (part - 0.5) for place in places]
        axes.bar(moved, steps.parts[name], width=0.4, color=colour, label=MEANINGS[name])
    axes.plot(places, steps.whole, "_", color=_WHOLE, markersize=14, label="whole")
    labels = [one_line(_readable(label), _LONGEST) for label in steps.labels]
    axes.set_xticks(list(places), labels, rotation=60, ha="right", parse_math=False)
    axes.tick_params(axis="x", length=0)


def _draw_curves(axes: Any, steps: Steps) -> None:
    """Means against the distance to the end; a logarithm shows how they shrink."""
    places = range(len(steps.labels))
    for name, colour in zip(steps.parts, _COLOURS, strict=True):
        if any(steps.parts[name]):
            axes.plot(places, steps.parts[name], "o-", color=colour, label=MEANINGS[name], ms=4)
    axes.plot(places, steps.whole, "-", color=_WHOLE, label="whole", lw=1)
    axes.set_yscale("log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("steps from the end")
