"""seqloom compare"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import BeamWidth, DecodingSettings, Json, existing_run


def compare(
    one: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that training wrote.")],
    other: Annotated[Path, typer.Argument(metavar="RUN", help="Another, of the same task.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Sources; with references as a second file or in one .tsv. Left out: a split.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A sentence instead of files. May be repeated."),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Without files: which part of the first run's data, test or dev.")
    ] = "test",
    shown: Annotated[
        int, typer.Option(min=0, help="Sentences to show, those that differ most first.")
    ] = 10,
    beam: BeamWidth = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A page with both attentions (.html), or all (.json)."),
    ] = None,
    json: Json = False,
    settings: DecodingSettings = None,
) -> None:
    """Two runs sentence by sentence: what each says, how good it is, where they differ."""
    runs = (existing_run(one), existing_run(other))
    if split not in ("test", "dev", "train"):
        raise typer.BadParameter(f"'{split}' is no split; there are test, dev and train")
    if text and files:
        raise typer.BadParameter("give files, or sentences by --text, and not both")
    if out is not None and out.suffix.lower() not in (".html", ".json"):
        raise typer.BadParameter(f"--out {out}: is a page (.html) or all numbers (.json)")
    how = (beam, settings or [])
    work("compare")(runs, (files or [], text or [], split), how, shown, out, json)
