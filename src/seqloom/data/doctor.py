"""What is wrong, or odd, with the data of a recipe."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from seqloom.config.schema.corpora import HoldOutConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.errors import DataError, NotFoundError, SeqloomError
from seqloom.data.batching import Sizes, plan_batches, refuse_too_long, sizes_of
from seqloom.data.example import Split
from seqloom.data.labelled import label_problem
from seqloom.data.oddities import Finding, oddities
from seqloom.data.rounds import examples_of_round, rounds_in_epoch
from seqloom.data.series import read_windows
from seqloom.data.splits import corpora_of
from seqloom.data.survey import Survey, Tokenizers, survey
from seqloom.data.text_windows import WindowLayout, shape_of
from seqloom.data.vocabularies import learn_tokenizers


@dataclass(frozen=True)
class WorstBatch:
    """The training batch with the most target positions: the one that needs most memory."""

    rows: int
    source_length: int
    """With END, padding included; 0 without a source."""
    target_length: int


@dataclass(frozen=True)
class Findings:
    findings: tuple[Finding, ...]
    surveys: tuple[Survey, ...]
    """One for each split that the recipe has."""
    worst_batch: WorstBatch | None
    """None if the training split cannot be read."""

    exit_code: int = 0
    """What training would end with: 66 if a file is missing, 65 for other errors, else 0."""

    @property
    def has_errors(self) -> bool:
        return any(finding.level == "error" for finding in self.findings)


def _no_progress(examples: int) -> None:
    """Nobody is watching."""


def examine(config: RunConfig, progress: Callable[[int], None] = _no_progress) -> Findings:
    """Read every split and report all that is found, errors too, rather than raise the first."""
    if isinstance(config.task, ForecastConfig):
        return _examine_numbers(config, config.task)
    problems: list[tuple[str, SeqloomError]] = []
    tokenizers = None
    try:
        tokenizers = Tokenizers(*learn_tokenizers(config))
    except SeqloomError as error:
        problems.append(("text", error))
    surveys: list[Survey] = []
    for split in _splits(config):
        train = surveys[0] if surveys else None
        data = config.data
        if train is not None and train.problems:
            data = _without_held_out(data, split)
        surveys.append(survey(data, split, tokenizers, train, progress))
    problems += [(f"data.{found.split}", error) for found in surveys for error in found.problems]
    if tokenizers is not None:
        problems += _label_problems(config, tokenizers, surveys)
    worst = None
    try:
        worst = _worst_batch(surveys[0], config)
    except SeqloomError as error:
        problems.append(("data.train", error))
    findings = [*_errors(problems)]
    for found in surveys:
        findings += oddities(found, config)
    return Findings(tuple(findings), tuple(surveys), worst, _exit_code(problems))


def _examine_numbers(config: RunConfig, task: ForecastConfig) -> Findings:
    """Windows of numbers are there or not; there is nothing else to count."""
    problems: list[tuple[str, SeqloomError]] = []
    surveys = []
    for split in _splits(config):
        found = Survey(split)
        try:
            found.examples = len(read_windows(config.data, task, split))
        except SeqloomError as error:
            found.problems.append(error)
            problems.append((f"data.{split}", error))
        surveys.append(found)
    return Findings(tuple(_errors(problems)), tuple(surveys), None, _exit_code(problems))


def _label_problems(
    config: RunConfig, tokenizers: Tokenizers, surveys: list[Survey]
) -> Iterator[tuple[str, SeqloomError]]:
    for found in surveys:
        if found.target is None or found.problems:
            continue
        sources = None if found.source is None else np.asarray(found.source.lengths)
        targets = np.asarray(found.target.lengths)
        problem = label_problem(config, tokenizers, found.split, sources, targets)
        if problem is not None:
            yield f"data.{found.split}", problem


def _without_held_out(data: DataConfig, split: Split) -> DataConfig:
    """What is held out of training data that cannot be read has no faults of its own."""
    own = [one for one in corpora_of(data, split) if not isinstance(one, HoldOutConfig)]
    return data.model_copy(update={split: tuple(own)})


def _exit_code(problems: list[tuple[str, SeqloomError]]) -> int:
    """The first problem decides, since training would stop there."""
    if not problems:
        return 0
    missing = isinstance(problems[0][1], NotFoundError)
    return NotFoundError.exit_code if missing else DataError.exit_code


def _splits(config: RunConfig) -> list[Split]:
    splits: tuple[Split, ...] = ("train", "dev", "test")
    return [split for split in splits if corpora_of(config.data, split)]


def _errors(problems: list[tuple[str, SeqloomError]]) -> Iterator[Finding]:
    """Each message once: what cannot be read for a vocabulary cannot be read for training."""
    places: dict[str, str] = {}
    for where, error in problems:
        # Missing files come several at a time, a line each.
        missing = isinstance(error, NotFoundError)
        for message in str(error).splitlines() if missing else [str(error)]:
            if places.get(message, "text") == "text":
                places[message] = where
    for message, where in places.items():
        what = message.removeprefix(f"{where}: ")
        yield Finding("error", where, what, "mend this first: training cannot start")


def _worst_batch(train: Survey, config: RunConfig) -> WorstBatch | None:
    if train.target is None or not train.kept or train.problems:
        return None
    shape = shape_of(config.data, "train")
    if shape is not None:
        layout = WindowLayout(config.training.batch_tokens, shape.length)
        layout.refuse_too_long(None, np.asarray(train.target.lengths))
        windows = -(-train.target.tokens // shape.length)
        return WorstBatch(min(layout.rows, windows), 0, shape.length)
    kept = np.asarray(train.kept)
    targets = np.asarray(train.target.lengths)[kept]
    sources = None if train.source is None else np.asarray(train.source.lengths)[kept]
    batches = _batches_of_epoch(sources, targets, config)
    worst = max(batches, key=lambda batch: len(batch) * (int(targets[batch].max()) + 1))
    return WorstBatch(
        rows=len(worst),
        source_length=0 if sources is None else int(sources[worst].max()) + 1,
        target_length=int(targets[worst].max()) + 1,
    )


def _batches_of_epoch(sources: Sizes | None, targets: Sizes, config: RunConfig) -> Iterator[Sizes]:
    """As the first epoch of training will see them, planned round by round."""
    budget, seed = config.training.batch_tokens, config.training.seed
    refuse_too_long(sizes_of(sources, targets), budget)
    rounds = rounds_in_epoch(len(targets))
    for number in range(rounds):
        rows = examples_of_round(len(targets), rounds, seed, number)
        some = None if sources is None else sources[rows]
        for batch in plan_batches(some, targets[rows], budget, seed, number):
            yield rows[batch]
