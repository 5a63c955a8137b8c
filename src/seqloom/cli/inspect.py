"""seqloom inspect"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import (
    BeamWidth,
    DecodingSettings,
    Json,
    Partners,
    RunFolder,
    existing_runs,
)

BEST = "best"
SUFFIXES = (".png", ".svg", ".pdf", ".html", ".json")


def inspect(
    run: RunFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="What to read. Left out: stdin, a text a line."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw into a png, svg, pdf, html or json file instead."),
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=1, help="One layer, from 1. Left out: the mean of all.")
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="N|best",
            help="One head, from 1, or those that `seqloom align --find-heads` found. Left out: "
            "the mean of all.",
        ),
    ] = None,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="The tokens of the model, not merged to words.")
    ] = False,
    n_best: Annotated[
        int, typer.Option(min=1, max=1000, help="Outputs for each text, the best first.")
    ] = 1,
    beam: BeamWidth = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Numbers instead of blocks, as without colour.")
    ] = False,
    json: Json = False,
    settings: DecodingSettings = None,
    partners: Partners = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="LANGUAGE", help="Of a run of several languages: into which."),
    ] = None,
) -> None:
    """Where each word of an output looked in its source.

    Pieces of words are merged: what the pieces of a source word get is added up, what the pieces
    of a target word look at is averaged, so that every row still adds up to one.
    """
    runs = existing_runs(run, partners)
    if out is not None and out.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(
            f"'{out}' does not say what to draw; name it {out.stem}.png, or another of "
            f"{', '.join(SUFFIXES)}"
        )
    if head not in (None, BEST) and not _counts(head):
        raise typer.BadParameter(f"'{head}' is no head; give a number from 1, or best")
    if head == BEST and layer is not None:
        raise typer.BadParameter("--head best names its layers itself; leave out --layer")
    number = None if head in (None, BEST) else int(head)
    view = (layer, number, head == BEST, pieces)
    work("inspect")(runs, texts, (n_best, beam, to, settings or []), view, (out, plain, json))


def _counts(head: str) -> bool:
    return head.isascii() and head.isdigit() and int(head) > 0
