"""seqloom slips"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Json, Partners, RunFolder, existing_runs


def slips(
    run: RunFolder,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Sources and references: two files, or one .tsv. Left out: a split of the recipe.",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Without files: which part of the recipe's data, test or dev.")
    ] = "test",
    first: Annotated[
        int | None, typer.Option(min=1, help="Only so many sentences, the first ones.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The curve as .svg, .png or .pdf, or all numbers (.json)."
        ),
    ] = None,
    json: Json = False,
    partners: Partners = None,
) -> None:
    """Where greedy outputs first leave their references, and what one slip does to the rest.

    For every sentence the log-probability of what is left of the reference, behind the true
    beginning, behind one wrong token, and behind the model's own words; the mean by distance.
    """
    runs = existing_runs(run, partners)
    if split not in ("test", "dev", "train"):
        raise typer.BadParameter(f"'{split}' is no split; there are test, dev and train")
    work("slips")(runs, files or [], split, first, out, json)
