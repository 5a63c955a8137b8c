"""seqloom forecast"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Json, RunFolder, existing_run


def forecast(
    run: RunFolder,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV with a line of names on top. Its last rows are read; rows behind them with "
            "blank values may give the context of the time to come.",
        ),
    ],
    json: Json = False,
) -> None:
    """Forecast the rows that follow those of a CSV file."""
    work("forecast")(existing_run(run), file, json)
