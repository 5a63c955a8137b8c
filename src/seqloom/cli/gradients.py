"""seqloom gradients"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Json, RunFolder, existing_run


def gradients(
    run: RunFolder,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What is read (a language model: what is said).")
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]", help="What should come out. Left out: what the run puts out."
        ),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="The loss of this answer alone, from 1. Left out: of all.")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="TEXT and TARGET are files, a sentence a line.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Draw it: .png, .svg, .pdf; .json: the numbers."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """How much of the loss' gradient reaches each step: along the chain, and through attention.

    With --lines, the means over all sentences, by the distance to their end.
    """
    folder = existing_run(run)
    work("gradients")(folder, (text, target), step, lines, out, json)
