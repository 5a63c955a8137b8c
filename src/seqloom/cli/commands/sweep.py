"""The command `seqloom sweep`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli.options import Json, Recipe, option
from seqloom.cli.output import print_json, print_message
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.recipe_settings import resolve_recipe
from seqloom.core.errors import ConfigError

if TYPE_CHECKING:
    from seqloom.jobs.sweeps.space import SweepTrial
    from seqloom.jobs.sweeps.training_process import TrialResult


def sweep(
    recipe: Recipe,
    settings: Annotated[
        list[str] | None,
        option(
            "KEY=A,B,C",
            "Values of a setting. The sweep trains all combinations. With --trials also "
            "KEY=LOW..HIGH, or KEY=LOW..HIGH:log for a logarithmic scale. Can be repeated.",
            "--set",
        ),
    ] = None,
    folder: Annotated[
        Path | None, option("FOLDER", "Folder of the runs. Default: runs/RECIPE-sweep.", "--run")
    ] = None,
    trials: Annotated[
        int | None,
        option("N", "Let Optuna choose the values of N trials. Default: all combinations.", min=1),
    ] = None,
    jobs: Annotated[
        int | None,
        option(
            "N",
            "Number of trainings at a time. Default: 1; with --ray, as many as fit.",
            min=1,
            max=256,
        ),
    ] = None,
    ray: Annotated[
        str | None,
        option(
            "ADDRESS",
            "Train on a Ray cluster with this address, for example auto. local starts a "
            "cluster on this machine.",
            advanced=True,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Train a recipe with different settings, and compare the scores on the dev split.

    The same command continues an interrupted sweep and keeps finished runs. A training that fails
    is reported at the end, and the others go on. `seqloom runs` lists the runs.
    """
    from seqloom.jobs.sweeps.space import grid, parse_dimensions
    from seqloom.jobs.sweeps.sweep import run_sweep

    dimensions = parse_dimensions(settings or [])
    if not dimensions:
        raise typer.BadParameter("--set is missing: name a setting and its values, KEY=A,B,C.")
    planned = grid(dimensions) if trials is None else []
    _check_settings(recipe, planned)
    root = folder or Path("runs") / f"{Path(recipe).stem}-sweep"
    if (root / "config.toml").exists():
        raise ConfigError(f"--run {root}: is the folder of a single run. Choose another folder.")
    root.mkdir(parents=True, exist_ok=True)
    set_interruption_message(
        lambda: (
            f"Interrupted. {root} keeps the finished runs. To continue, run: {current_command()}"
        )
    )
    results = run_sweep(recipe, root, dimensions, planned, trials, jobs, ray, _report)
    if json:
        print_json([result.to_json() for result in results], indent=2)
    else:
        _print_table(results)
    _raise_failures(results)


def _report(result: TrialResult) -> None:
    best = "-" if result.best is None else f"{result.best:.4g}"
    print_message(f"{result.trial.name}: {'failed' if result.error else best}")


def _check_settings(recipe: str, planned: Sequence[SweepTrial]) -> None:
    """Load the recipe with the settings of each trial, to find errors before training starts."""
    for trial in planned:
        resolve_recipe(recipe, trial.settings)


def _print_table(results: Sequence[TrialResult]) -> None:
    from seqloom.cli.tables import make_table, metric_label, stdout_console

    rows = []
    for result in results:
        run = result.run
        best = "" if run is None or run.best is None else f"{run.best:.4g}"
        step = "" if run is None or run.best_step is None else f"{run.best_step:,}"
        status = "failed" if result.error or run is None else run.status
        rows.append((result.trial.name, best, step, status))
    score = next((each.run.score for each in results if each.run and each.run.score), "score")
    headers = ("trial", f"best {metric_label(score)} on dev", "at step", "status")
    stdout_console().print(make_table(headers, rows))


def _raise_failures(results: Sequence[TrialResult]) -> None:
    from seqloom.jobs.sweeps.training_process import SweepFailedError

    failed = [result for result in results if result.error]
    if failed:
        listed = "\n".join(f"{result.trial.name}: {result.error}" for result in failed)
        raise SweepFailedError(
            f"{len(failed)} of {len(results)} trainings failed. The same command tries them again.\n"
            f"{listed}"
        )
