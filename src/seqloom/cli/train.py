"""seqloom train"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import resolved_recipe, work
from seqloom.cli.options import Recipe, Settings
from seqloom.core.errors import ConfigError


class Progress(StrEnum):
    RICH = "rich"
    PLAIN = "plain"
    NONE = "none"


def train(
    recipe: Recipe,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="FOLDER", help="Where to write. Left out: runs/RECIPE."),
    ] = None,
    settings: Settings = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in that folder.")
    ] = False,
    progress: Annotated[
        Progress | None,
        typer.Option(help="How to watch. Left out: rich in a terminal, plain lines elsewhere."),
    ] = None,
) -> None:
    """Train a model by a recipe, into a folder that works alone."""
    resolved = resolved_recipe(recipe, settings)
    folder = run or Path("runs") / Path(recipe).stem
    if not resume and (folder / "config.toml").exists():
        raise ConfigError(
            f"{folder}: holds a run already; go on with it by --resume, or choose another --run"
        )
    code = work("train")(resolved.config, folder, resume, progress and progress.value)
    raise typer.Exit(code)
