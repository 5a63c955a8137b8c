"""seqloom translate"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import (
    BeamWidth,
    Engine,
    Json,
    OutputSettings,
    Partners,
    RunFolder,
    existing_runs,
    known_engine,
)


def translate(
    run: RunFolder,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Text, a sentence a line. Left out, or -: stdin."),
    ] = None,
    beam: BeamWidth = None,
    n_best: Annotated[
        int, typer.Option(min=1, max=1000, help="Outputs for each line, the best first.")
    ] = 1,
    scores: Annotated[bool, typer.Option("--scores", help="Put out scores beside texts.")] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Put out word alignments (0-0 1-2) beside texts.")
    ] = False,
    json: Json = False,
    engine: Engine = None,
    settings: OutputSettings = None,
    partners: Partners = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="LANGUAGE", help="Of a run of several languages: into which."),
    ] = None,
    through: Annotated[
        str | None,
        typer.Option(metavar="LANGUAGE", help="With --to: into this language first."),
    ] = None,
) -> None:
    """Translate: one line in is one line out, in order, blank lines kept.

    With --n-best N, lines are `id ||| output ||| log-probabilities ||| score`.
    """
    runs = existing_runs(run, partners)
    how = [*(settings or []), *([f"engine.kind={known_engine(engine)}"] if engine else [])]
    if through is not None and to is None:
        raise typer.BadParameter("--through needs --to, the language to end with")
    way = None if to is None else [to] if through is None else [through, to]
    wanted = (n_best, way)
    work("translate")(runs, files or [], how, beam, wanted, shown=(scores, alignments, json))
