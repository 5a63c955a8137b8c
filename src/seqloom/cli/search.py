"""seqloom search"""

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


def search(
    run: RunFolder,
    text: Annotated[
        str,
        typer.Argument(
            metavar="[TEXT]",
            help="What is read; of a language model, how to begin; of a captioner, an image file.",
        ),
    ] = "",
    beam: BeamWidth = None,
    n_best: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Outputs. Left out: as many as the search follows."),
    ] = None,
    instead: Annotated[
        str | None,
        typer.Option(
            metavar="STEP=TOKEN",
            help="What if? Put this token at a step of the output, and decode on; </s> ends it.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every candidate, not only the best dropped ones.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The tree as .svg, .png or .pdf, a page (.html), or the record (.json).",
        ),
    ] = None,
    json: Json = False,
    settings: DecodingSettings = None,
    partners: Partners = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="LANGUAGE", help="Of a run of several languages: into which."),
    ] = None,
) -> None:
    """Watch a search: every candidate of every step, and why it was dropped.

    Greedy search, beams, samples and exhaustive search, as the recipe or --beam and --set say.
    """
    runs = existing_runs(run, partners)
    change = None if instead is None else step_and_token(instead)
    how = (beam, settings or [])
    work("search")(runs, text, how, (n_best, change, to), (everything, json), out)


def step_and_token(written: str) -> tuple[int, str]:
    """ "3=word" -> (3, "word")"""
    step, equals, token = written.partition("=")
    if not (equals and token and step.strip().isascii() and step.strip().isdigit()):
        raise typer.BadParameter(
            f"--instead '{written}': give a step and a token, as 3=word; steps count from 1"
        )
    return int(step), token
