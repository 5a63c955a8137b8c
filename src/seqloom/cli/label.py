"""seqloom label"""

from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Json, Partners, RunFolder, existing_runs


def label(
    run: RunFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="What to label. Left out: stdin, a text a line."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every label of a text with its probability.")
    ] = False,
    json: Json = False,
    partners: Partners = None,
) -> None:
    """Label texts, or each of their tokens.

    A text that gets one label is answered by a line `label<TAB>probability`; one that gets a label
    for each token by two lines, the tokens and below them their labels.
    """
    work("label")(existing_runs(run, partners), texts, every, json)
