"""seqloom score"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Partners, RunFolder, existing_runs


def score(
    run: RunFolder,
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="What is read (a language model: the texts).")
    ],
    target: Annotated[
        Path | None,
        typer.Argument(metavar="[TARGET]", help="What should come out, line by line."),
    ] = None,
    per_token: Annotated[
        bool, typer.Option("--per-token", help="The log-probability of each token instead.")
    ] = False,
    partners: Partners = None,
) -> None:
    """The model's own log-probability of given outputs: one number a line."""
    runs = existing_runs(run, partners)
    work("score")(runs, source, target, per_token)
