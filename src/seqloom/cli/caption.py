"""seqloom caption"""

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


def caption(
    run: RunFolder,
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGE...", help="Image files, or members of archives: a.zip/b.jpg."
        ),
    ],
    show: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw where each word looked: a png, svg or pdf file."),
    ] = None,
    beam: BeamWidth = None,
    json: Json = False,
    settings: DecodingSettings = None,
    partners: Partners = None,
) -> None:
    """Say what is on images, a line for each."""
    runs = existing_runs(run, partners)
    work("caption")(runs, images, show, beam, json, settings or [])
