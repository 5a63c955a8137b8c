"""seqloom lab"""

import re
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Json

SIZES = ("tiny", "small", "full")
MOST_SEEDS = 1000


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
        str,
        typer.Option(
            metavar="N|FIRST-LAST",
            help="How many, counted from 1, or which: 11-13. A verdict needs three or more.",
        ),
    ] = "3",
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
    wanted = chosen_seeds(seeds)
    if not names:
        raise typer.Exit(work("lab")(out, json))
    from seqloom.lab.names import chosen_claims

    raise typer.Exit(work("lab_run")(chosen_claims(names), size, wanted, out, jobs, json))


def chosen_seeds(text: str) -> range:
    """3 are the seeds 1, 2 and 3; 11-13 are 11, 12 and 13."""
    found = re.fullmatch(r"(?:(\d{1,9})-)?(\d{1,9})", text.strip())
    if found is not None:
        first, last = int(found[1] or 1), int(found[2])
        if 1 <= first <= last < first + MOST_SEEDS:
            return range(first, last + 1)
    raise typer.BadParameter(
        f"'{text}' says no seeds; give how many (3), or the first and the last (11-13), at most "
        f"{MOST_SEEDS:,}",
        param_hint="--seeds",
    )
