"""seqloom lab"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Json

SIZES = ("tiny", "small", "full")


def lab(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLAIM]...", help="Claims to put to the test, or all. None: list them."
        ),
    ] = None,
    size: Annotated[
        str,
        typer.Option(
            metavar="small|full",
            help="small: minutes on two cores; full: for a GPU; tiny: only to see that it runs.",
        ),
    ] = "small",
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, help="Seeds; a verdict needs three or more.")
    ] = 3,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write, and to look for reports.")
    ] = Path("runs/lab"),
    jobs: Annotated[
        int, typer.Option(min=1, max=256, help="Measurements side by side, a process each.")
    ] = 1,
    json: Json = False,
) -> None:
    """Put what the lectures claim to the test: an experiment and a verdict for each claim.

    A report is a folder with report.html and report.json. What was measured before is not
    measured again.
    """
    if size not in SIZES:
        raise typer.BadParameter(
            f"there is no size '{size}'; there are {', '.join(SIZES)}", param_hint="--size"
        )
    if not names:
        raise typer.Exit(work("lab")(out, json))
    from seqloom.lab.names import chosen_claims

    raise typer.Exit(work("lab_run")(chosen_claims(names), size, seeds, out, jobs, json))
