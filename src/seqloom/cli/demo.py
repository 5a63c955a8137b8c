"""seqloom demo"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Settings


def demo(
    run: Annotated[Path, typer.Option("--run", metavar="FOLDER", help="Where to write.")] = Path(
        "runs/demo"
    ),
    settings: Settings = None,
) -> None:
    """Train German to English on the bundled pairs, in minutes, and look at what comes out.

    A demo that was interrupted goes on where it was.
    """
    from seqloom.config.loading.loader import load_bundled_recipe

    resolved = load_bundled_recipe("demo", settings or ())
    raise typer.Exit(work("demo")(resolved.config, run))
