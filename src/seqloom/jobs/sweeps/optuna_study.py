"""Chooses the settings of a sweep's trials with Optuna. A trial is one training run.

The Optuna study is stored, so that a sweep can be continued.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqloom.core.errors import ConfigError
from seqloom.core.extras import import_optional
from seqloom.jobs.sweeps.space import Choice, Dimension, SweepTrial, make_trial
from seqloom.jobs.sweeps.training_process import TrialResult

STUDY = "optuna.log"


class OptunaStudy:
    """An Optuna study, stored in the folder of a sweep.

    count:     number of trials that the study should have at the end, including those of earlier
               commands. Failed trials do not count.
    minimises: True if lower scores are better
    """

    def __init__(
        self, folder: Path, dimensions: Sequence[Dimension], count: int, *, minimises: bool
    ) -> None:
        optuna: Any = import_optional("optuna", "sweep", "seqloom sweep --trials")
        backend: Any = import_optional("optuna.storages.journal", "sweep", "seqloom sweep --trials")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._states = optuna.trial.TrialState
        self._dimensions, self._count = list(dimensions), count
        self._path = folder / STUDY
        self._study = optuna.create_study(
            storage=optuna.storages.JournalStorage(backend.JournalFileBackend(str(self._path))),
            study_name="sweep",
            direction="minimize" if minimises else "maximize",
            load_if_exists=True,
        )

    def trials(self) -> Iterator[SweepTrial]:
        """Yield the trials of earlier commands, except failed ones. Then yield new trials.

        New trials are created until the study has `count` trials.
        """
        stored = [
            trial
            for trial in self._study.get_trials(deepcopy=False)
            if trial.state != self._states.FAIL
        ]
        keys = {dimension.key for dimension in self._dimensions}
        for trial in stored:
            if {*trial.params} != keys:
                raise ConfigError(
                    f"{self._path}: is a study of other settings: {', '.join(trial.params)}. Repeat "
                    "the command that started it, or choose another folder with --run."
                )
            # The command may name the settings in another order than the first command. The name
            # of a run folder depends on the order.
            self._dimensions.sort(key=lambda dimension: [*trial.params].index(dimension.key))
            yield self._make(trial.number, trial.params.values())
        for _ in range(self._count - len(stored)):
            trial = self._study.ask()
            yield self._make(
                trial.number, [self._suggest(trial, each) for each in self._dimensions]
            )

    def tell(self, result: TrialResult) -> None:
        """Store the score of a trial, or that it failed."""
        number = int(result.trial.name.partition("_")[0])
        if result.error is not None or result.best is None:
            self._study.tell(number, state=self._states.FAIL, skip_if_finished=True)
        else:
            self._study.tell(number, result.best, skip_if_finished=True)

    def _make(self, number: int, values: Iterable[object]) -> SweepTrial:
        """Return a trial with these values. Its name starts with `number`."""
        trial = make_trial(self._dimensions, [_format(value) for value in values])
        return replace(trial, name=f"{number:03d}_{trial.name}")

    def _suggest(self, trial: Any, dimension: Dimension) -> object:
        if isinstance(dimension, Choice):
            return trial.suggest_categorical(dimension.key, dimension.values)
        if dimension.is_integer:
            low, high = int(dimension.low), int(dimension.high)
            return trial.suggest_int(dimension.key, low, high, log=dimension.is_log)
        return trial.suggest_float(
            dimension.key, dimension.low, dimension.high, log=dimension.is_log
        )


def _format(value: object) -> str:
    """Return a value as text for --set. A float is rounded to four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
