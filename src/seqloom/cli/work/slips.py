"""Where outputs leave their references, told and drawn."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from seqloom.cli.output import put, tell, warn
from seqloom.cli.work.pairs import examples_of, without_blank
from seqloom.cli.work.tables import bar, stdout_console, table
from seqloom.core.errors import DataError
from seqloom.core.storage import write_file
from seqloom.data.example import Split
from seqloom.runs.run import load
from seqloom.runs.slips import Slip, Slips, find_slips, refuse_without_source
from seqloom.viz.figures import image_format
from seqloom.viz.line_plot import Curve, LinePlot, save_line_plots

EXAMPLES = 3
FEWEST = 10
"""Sentences that a point of the picture is the mean of; the table has all points."""


def slips(
    folders: Sequence[Path],
    files: Sequence[Path],
    split: Split,
    first: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    if out is not None and out.suffix.lower() != ".json":
        image_format(out)  # a name that is no picture's is told before anything is loaded
    run = load(folders)
    refuse_without_source(run)
    examples = examples_of(files, run.config.data, split)[:first]
    if bare := [each.where for each in examples if not each.references]:
        raise DataError(f"{bare[0]}: has no reference; give two files, sources and references")
    there = without_blank(examples)
    if len(there) < len(examples):
        warn(f"{len(examples) - len(there):,} of {len(examples):,} sources are blank: left out")
    with bar("decoding") as advance:
        found = find_slips(run, there, advance)
    if out is not None:
        if out.suffix.lower() == ".json":
            text = json.dumps(found.to_json(), ensure_ascii=False, indent=1)
            write_file(out, text.encode())
        else:
            save_line_plots(out, plot_of(found))
        tell(f"{out}: what slips do to the rest")
    if as_json:
        put(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        _show(found)


def plot_of(found: Slips) -> LinePlot:
    """Three curves that part at the slip."""
    names = {
        "truth": "behind the truth",
        "slip": "behind one wrong token",
        "own": "behind the model's own words",
    }
    curves = []
    for key, name in names.items():
        points = [
            (one.distance, getattr(one, key))
            for one in found.curve
            if (key == "truth" or one.distance >= 0)
            and (one.own_sentences if key == "own" else one.sentences) >= FEWEST
        ]
        curves.append(Curve(name, points))
    title = f"{len(found.slipped):,} of {len(found.sentences):,} outputs leave their reference"
    return LinePlot(
        title=title,
        x_label=f"tokens after the first slip (where {FEWEST} sentences or more reach)",
        y_label="mean log p of the reference's token",
        curves=curves,
        vertical_line=0,
    )


def _show(found: Slips) -> None:
    console = stdout_console()
    total, slipped = len(found.sentences), found.slipped
    console.print(Text(f"{found.run}: {total:,} sentences", "bold"), soft_wrap=True)
    console.print(f"{total - len(slipped):,} outputs are the reference, {len(slipped):,} leave it")
    if not slipped:
        return
    places = [one.at + 1 for one in slipped if one.at is not None]
    console.print(
        f"first slip: at token {sum(places) / len(places):.1f} on average, "
        f"{100 * sum(place == 1 for place in places) / len(places):.0f} % at the first\n"
    )
    rows = [
        (
            f"{one.distance:+d}" if one.distance else "slip",
            f"{one.sentences:,}",
            f"{one.truth:.2f}",
            f"{one.slip:.2f}" if one.distance > 0 else "",
            "" if one.own is None or one.distance <= 0 else f"{one.own:.2f}",
        )
        for one in found.curve
    ]
    heads = ("token", "sentences", "truth", "one slip", "own words")
    console.print(table(heads, rows))
    note = (
        "mean log p of the reference's token, by what stands before it; own words: where the "
        "output is that long"
    )
    console.print(Text(f"{note}\n", "dim"), soft_wrap=True)
    console.print(Text(f"the {EXAMPLES} slips that cost most", "bold"))
    for one in sorted(slipped, key=lost)[:EXAMPLES]:
        _example(one)


def lost(one: Slip) -> float:
    """What one wrong token takes from the log-probability of the rest."""
    assert one.at is not None
    return sum(one.slip[one.at + 1 :]) - sum(one.truth[one.at + 1 : len(one.slip)])


def _example(one: Slip) -> None:
    console = stdout_console()
    assert one.at is not None
    rows = [("source", one.source), ("reference", one.reference), ("output", one.output)]
    for name, text in rows:
        console.print(Text.assemble((f"{name:<11}", "dim"), text), soft_wrap=True)
    place = one.at
    words = (
        f"'{one.said}' instead of '{one.pieces[place]}' (p {math.exp(one.truth[place]):.2f}); "
        f"the rest of the reference: log p {sum(one.truth[place + 1 :]):.2f}, "
        f"behind the slip {sum(one.slip[place + 1 :]):.2f}"
    )
    console.print(Text.assemble(("slip       ", "dim"), words), soft_wrap=True)
    console.print()
