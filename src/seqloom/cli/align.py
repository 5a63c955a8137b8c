"""seqloom align"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Json, Partners, RunFolder, existing_run, existing_runs


def align(
    run: RunFolder,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="What is read, a sentence a line; or pairs, by tabs."
        ),
    ],
    target: Annotated[
        Path | None,
        typer.Argument(metavar="[TARGET]", help="Its translations, line by line."),
    ] = None,
    soft: Annotated[
        bool, typer.Option("--soft", help="All links of 0.01 or more with their weight: 0-0:0.93.")
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Alignments by people (0-0 sure, 0p1 possible, from 0): put out scores instead.",
        ),
    ] = None,
    find_heads: Annotated[
        bool,
        typer.Option(
            "--find-heads", help="With --gold: find the heads that align best, and keep to them."
        ),
    ] = False,
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A run that translates back: their weights are multiplied, and links joined.",
        ),
    ] = None,
    symmetrise: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="With --reverse: intersection, union, grow-diag or grow-diag-final.",
        ),
    ] = "grow-diag",
    json: Json = False,
    partners: Partners = None,
) -> None:
    """Which source word each target word comes from, by attention.

    A line `0-0 2-1` for each pair: source word 0 with target word 0, 2 with 1, counted from 0.
    Words are what spaces separate.
    """
    runs = existing_runs(run, partners)
    if find_heads and gold is None:
        raise typer.BadParameter("--find-heads needs --gold: heads are found by what people say")
    if reverse is not None and (soft or find_heads):
        raise typer.BadParameter("--reverse puts links together; leave out --soft and --find-heads")
    if soft and gold is not None:
        raise typer.BadParameter("--gold scores links, not their weights; leave out --soft")
    back = None if reverse is None else (existing_run(reverse), symmetrise)
    files = [source] if target is None else [source, target]
    work("align")(runs, files, back, (gold, find_heads), (soft, json))
