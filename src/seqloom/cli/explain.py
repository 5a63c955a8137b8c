"""seqloom explain"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import BeamWidth, DecodingSettings, Json, existing_run


def explain(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A folder that training wrote.")
    ] = None,
    text: Annotated[
        str,
        typer.Argument(metavar="[TEXT]", help="What is read; a language model goes on from it."),
    ] = "",
    step: Annotated[int, typer.Option(help="Which token of the output, from 1.")] = 1,
    target: Annotated[
        str | None, typer.Option(help="Explain this output instead of the run's own.")
    ] = None,
    layer: Annotated[
        int | None, typer.Option(help="Whose look is laid open, from 1. Left out: the top one.")
    ] = None,
    head: Annotated[int | None, typer.Option(help="Which of its heads, from 1.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="All numbers of long vectors, not only some.")
    ] = False,
    beam: BeamWidth = None,
    json: Json = False,
    settings: DecodingSettings = None,
    example: Annotated[
        bool, typer.Option("--example", help="A small example to follow by hand; needs no run.")
    ] = False,
) -> None:
    """Lay one step open: query, keys, scores, weights, values, context, and the best tokens.

    Every value comes with its shape, its numbers and its formula in this model.
    """
    if example and run is not None:
        raise typer.BadParameter("--example needs no run; leave out one of the two")
    if run is None and not example:
        raise typer.BadParameter("give a run folder and a text, or --example")
    folder = None if run is None else existing_run(run)
    asked = (step, target, layer, head)
    work("explain")(folder, text, asked, beam, settings or [], (full, json))
