"""The command `seqloom train`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.options import ParentFolder, Recipe, Settings, flag, option
from seqloom.cli.output import print_message
from seqloom.cli.process.interrupts import (
    current_command,
    set_interruption_message,
    training_interrupted,
)
from seqloom.cli.recipe_settings import resolve_recipe
from seqloom.core.errors import ConfigError, PeerError, SeqloomError
from seqloom.core.launch import SECONDS_TO_PRINT, is_main_rank, local_rank, restarts


@contextmanager
def _printed_once_per_machine() -> Iterator[None]:
    """Context manager that lets only the first rank of each machine print an error.

    The ranks of a machine read the same files, so all of them raise the same error. On the other
    ranks, this context manager replaces the error by a PeerError, which is not printed. They end
    later than the first rank, because torchrun ends all ranks as soon as one of them has ended.
    """
    try:
        yield
    except SeqloomError as error:
        if local_rank() > 0:
            time.sleep(SECONDS_TO_PRINT)
            raise PeerError(str(error)) from error
        raise


def train(
    recipe: Recipe,
    run_folder: Annotated[
        Path | None, option("FOLDER", "Run folder to write. Default: runs/RECIPE.", "--run")
    ] = None,
    parent: ParentFolder = None,
    settings: Settings = None,
    resume: Annotated[
        bool, flag("--resume", "Continue the interrupted training of the run folder.")
    ] = False,
) -> None:
    """Train a model from a recipe and write a self-contained run folder.

    With --resume, RECIPE can be the run folder itself. With --from RUN, training continues from the
    weights of another run on the data of RECIPE (fine-tuning).
    """
    from seqloom.runs.archive import is_packed_run

    set_interruption_message(
        lambda: f"Interrupted before training. To start again, run: {current_command()}"
    )
    with _printed_once_per_machine():
        if is_packed_run(Path(recipe)):
            raise ConfigError(
                f"{recipe}: is a packed run, which has no checkpoints. Resume the run folder that was "
                f"packed, or train on your own data with `seqloom train RECIPE --from {recipe}`."
            )
        config = resolve_recipe(recipe, settings, parent).config
        is_run = (Path(recipe) / "config.toml").is_file()
        folder = run_folder or (Path(recipe) if is_run else Path("runs") / Path(recipe).stem)
        # A job that torchrun has restarted may resume its run. `run_training` decides that.
        if not resume and not restarts() and (folder / "config.toml").exists():
            raise ConfigError(
                f"{folder}: already contains a run. Continue it with `seqloom train {folder} "
                "--resume`, or choose another folder with --run."
            )
    set_interruption_message(lambda: training_interrupted(folder, current_command()))

    from seqloom.cli.training_display import exit_code, summary_lines, training_display
    from seqloom.training.loop import train as run_training

    with training_display() as report:
        summary = run_training(config, folder, resume=resume, report=report)
    if is_main_rank():
        for line in summary_lines(config, summary):
            print_message(line)
    raise typer.Exit(exit_code(summary))
