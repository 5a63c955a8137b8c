"""Trains all trials of a sweep."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from seqloom.core.threads import configured_threads, threads_per_process
from seqloom.jobs.sweeps.space import Dimension, SweepTrial
from seqloom.jobs.sweeps.training_process import (
    TrialResult,
    TrialRunner,
    best_first,
    run_on_ray,
    run_trials,
)
from seqloom.metrics.build import higher_is_better
from seqloom.runs.recipe import load_recipe


def run_sweep(
    recipe: str,
    root: Path,
    dimensions: Sequence[Dimension],
    planned: Iterable[SweepTrial],
    trials: int | None,
    jobs: int | None,
    ray: str | None,
    report: Callable[[TrialResult], None],
) -> list[TrialResult]:
    """Train all trials. Returns their results, the best first.

    planned: trials of a grid, if `trials` is None
    trials:  number of trials whose values Optuna chooses
    ray:     address of a Ray cluster. None: train on this machine
    report:  called with the result of each trial
    """
    if jobs is not None and jobs > 1:
        threads: int | None = threads_per_process(jobs)
    else:
        # Ray reserves one core for a trial whose number of threads is not set.
        threads = configured_threads() or (None if ray is None else 1)
    source = str(Path(recipe).absolute()) if Path(recipe).exists() else recipe
    runner = TrialRunner(source, root.absolute() if ray else root, threads)
    run: Callable[[SweepTrial], TrialResult] = runner
    if ray is not None:
        run, jobs = run_on_ray(runner, ray, jobs)
    study = None
    if trials is not None:
        from seqloom.jobs.sweeps.optuna_study import OptunaStudy

        score = load_recipe(recipe).config.training.stopping.score
        study = OptunaStudy(root, dimensions, trials, minimises=not higher_is_better(score))
        planned = study.trials()
    results = []
    for result in run_trials(run, planned, jobs or 1):
        if study is not None:
            study.tell(result)
        report(result)
        results.append(result)
    return best_first(results)
