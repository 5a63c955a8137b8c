"""The command `seqloom error-propagation`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.text import Text

from seqloom.cli.options import (
    EnsembleMembers,
    FigureFile,
    Json,
    RunFolder,
    Split,
    argument,
)
from seqloom.cli.output import print_warning, show_result
from seqloom.cli.process.progress import progress_bar
from seqloom.cli.tables import make_table, stdout_console
from seqloom.core.errors import DataError

if TYPE_CHECKING:
    from seqloom.analysis.error_propagation import ErrorPropagation, SentenceErrors

EXAMPLE_COUNT = 3


def error_propagation(
    run_folder: RunFolder,
    files: Annotated[
        list[Path] | None,
        argument(
            "[FILE]...",
            "Two files, sources and references, or one .tsv file with both. "
            "Default: a split of the recipe's data.",
        ),
    ] = None,
    split: Split = "test",
    out: FigureFile = None,
    json: Json = False,
    ensemble: EnsembleMembers = None,
) -> None:
    """Measure how one wrong token changes the probability of the rest of the reference.

    Computes the log-probability of each reference token three times. The three prefixes that the
    decoder reads before the token are: the reference, the reference with one wrong token, and the
    output of the model. Prints the mean for each prefix, by the distance from the first wrong token.
    """
    from seqloom.analysis.error_propagation import check_has_source, measure_error_propagation
    from seqloom.data.readers.example_files import read_example_files
    from seqloom.inference.run import load
    from seqloom.viz.chart import render_svg
    from seqloom.viz.error_propagation import error_chart

    run = load([run_folder, *(ensemble or ())])
    check_has_source(run)
    examples = read_example_files(files, run.config.data, split)
    for example in examples:
        if not example.references:
            raise DataError(
                f"{example.where}: no reference. Give two files, sources and references."
            )
    filled = [example for example in examples if example.source.strip()]
    if len(filled) < len(examples):
        skipped = len(examples) - len(filled)
        print_warning(f"skipped {skipped:,} of {len(examples):,} sources: blank")
    with progress_bar("decoding") as advance:
        result = measure_error_propagation(run, filled, advance)
    show_result(
        result.to_json(),
        lambda: _print_result(stdout_console(), result),
        lambda: render_svg(error_chart(result)),
        out=out,
        json=json,
        title="effect of the first error on the rest of the sentence",
    )


def _print_result(console: Console, result: ErrorPropagation) -> None:
    total, differing = len(result.sentences), result.with_error
    console.print(Text(f"{result.run}: {total:,} sentences", "bold"), soft_wrap=True)
    console.print(
        f"{total - len(differing):,} outputs equal their reference, {len(differing):,} differ"
    )
    if not differing:
        return
    positions = [each.error_index + 1 for each in differing if each.error_index is not None]
    mean = sum(positions) / len(positions)
    at_first = 100 * sum(position == 1 for position in positions) / len(positions)
    console.print(
        f"first error: at token {mean:.1f} on average, {at_first:.0f} % at the first token\n"
    )
    rows = [
        (
            f"{point.distance:+d}" if point.distance else "error",
            f"{point.sentences:,}",
            f"{point.after_reference:.2f}",
            f"{point.after_error:.2f}" if point.distance > 0 else "",
            ""
            if point.after_output is None or point.distance <= 0
            else f"{point.after_output:.2f}",
        )
        for point in result.curve
    ]
    headers = ("token", "sentences", "reference prefix", "one wrong token", "own output")
    console.print(make_table(headers, rows))
    note = (
        "mean log p of the reference token after each kind of prefix; own output: mean "
        "over the outputs that are long enough"
    )
    console.print(Text(f"{note}\n", "dim"), soft_wrap=True)
    console.print(Text(f"the {EXAMPLE_COUNT} most harmful errors", "bold"))
    for each in sorted(differing, key=lambda each: each.change)[:EXAMPLE_COUNT]:
        _print_example(console, each)


def _print_example(console: Console, sentence: SentenceErrors) -> None:
    assert sentence.error_index is not None
    position, rest = sentence.error_index, sentence.error_index + 1
    error = (
        f"'{sentence.wrong_piece}' instead of '{sentence.reference_pieces[position]}' "
        f"(p {math.exp(sentence.after_reference[position]):.2f}); the rest of the reference has "
        f"log p {sum(sentence.after_reference[rest:]):.2f}, "
        f"after the error {sum(sentence.after_error[rest:]):.2f}"
    )
    rows = [
        ("source", sentence.source),
        ("reference", sentence.reference),
        ("output", sentence.output),
        ("error", error),
    ]
    for name, text in rows:
        console.print(Text.assemble((f"{name:<11}", "dim"), text), soft_wrap=True)
    console.print()
