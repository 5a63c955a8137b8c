"""Checks the data of a recipe: reads all splits and reports errors, warnings and statistics."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from seqloom.config.schema.corpora import HoldOutConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.errors import NotFoundError, SeqloomError
from seqloom.data.batching.layout import plan_batches, refuse_too_long
from seqloom.data.batching.stream import shard_examples, shards_per_epoch
from seqloom.data.checks.data_files import check_expected_files
from seqloom.data.checks.lengths import (
    Side,
    frame_counts,
    label_count_error,
    max_length_error,
    max_length_problems,
)
from seqloom.data.checks.statistics import SplitStatistics, collect_statistics
from seqloom.data.checks.vocabulary_fit import VocabularyFit, fit_warnings, measure_fit
from seqloom.data.checks.warnings import Finding, split_warnings
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.corpus.long_text import (
    WindowLayout,
    scoring_windows,
    training_windows,
    window_shape,
)
from seqloom.data.corpus.vocabularies import Tokenizers, train_tokenizers
from seqloom.data.example import Split
from seqloom.data.modalities.series import read_windows
from seqloom.data.readers.splits import corpora_of


@dataclass(frozen=True)
class WorstBatch:
    """Shape of the training batch with the most target positions, padding included. This batch
    is expected to need the most memory."""

    rows: int
    source_length: int
    """Length of the padded sources: tokens including END, or frames; 0 for other sources."""
    target_length: int
    """Length of the padded targets, including END."""


@dataclass(frozen=True)
class DatasetCheck:
    """The result of checking the data of a recipe: findings (errors, warnings and notes) and
    statistics."""

    findings: tuple[Finding, ...]
    statistics: tuple[SplitStatistics, ...]
    """The statistics of each split of the recipe."""
    worst_batch: WorstBatch | None
    """None if the training split cannot be read, cannot be divided into batches, or consists of
    series."""
    exit_code: int = 0
    """Exit code that `seqloom train` would return: 0 if there are no errors, 66 if a file is missing,
    78 if a setting is not valid, 65 if the data cannot be used."""
    vocabulary_fits: tuple[VocabularyFit, ...] = ()
    """In fine-tuning, how the vocabulary of the parent splits the new data."""

    @property
    def has_errors(self) -> bool:
        return any(finding.level == "error" for finding in self.findings)

    def is_complete(self, statistics: SplitStatistics) -> bool:
        """Return True if the statistics cover the whole split, False if they may cover only a part.

        Returns False if the split has errors. Also returns False if the split is empty and the
        training data has errors: the split may be a held-out part of the training data that could
        not be read.
        """
        empty = not statistics.examples and self.statistics[0].problems
        return not statistics.problems and not empty


@dataclass(frozen=True)
class _Problem:
    """An error and the table of the recipe that it concerns, such as "data.train"."""

    where: str
    error: SeqloomError


def _ignore_progress(split: Split, examples: int) -> None:
    """The default progress callback. It does nothing."""


def examine(
    config: RunConfig,
    progress: Callable[[Split, int], None] = _ignore_progress,
    tokenizers: Tokenizers | None = None,
) -> DatasetCheck:
    """Check the data of a recipe: read all splits and collect statistics, warnings and errors.

    Errors in the data are part of the result; they are not raised.

    progress:   called at intervals with a split and the number of examples read from it so far
    tokenizers: in fine-tuning, the tokenizers of the run that fine-tuning starts from. Default:
                train new ones
    """
    try:
        size_warning = check_expected_files(config.data)
    except NotFoundError as error:
        finding = Finding("error", "data", str(error), "fix this first: training cannot start")
        return DatasetCheck((finding,), (), None, NotFoundError.exit_code)
    findings: list[Finding] = []
    if size_warning:
        remedy = "compare the files with those of the data set"
        findings.append(Finding("warning", "data", size_warning, remedy))
    if isinstance(config.task, ForecastConfig):
        check = _examine_series(config, config.task)
        return replace(check, findings=(*findings, *check.findings))
    problems: list[_Problem] = []
    fits: list[VocabularyFit] = []
    if tokenizers is not None:
        fits = measure_fit(config.data, tokenizers)
        findings += fit_warnings(fits)
    else:
        try:
            tokenizers = train_tokenizers(config)
        except SeqloomError as error:
            problems.append(_Problem("text", error))
    statistics: list[SplitStatistics] = []
    for split in _splits(config):
        train = statistics[0] if statistics else None
        data = config.data
        if train is not None and train.problems:
            data = _without_hold_outs(data, split)
        statistics.append(
            collect_statistics(data, split, tokenizers, train, partial(progress, split))
        )
    for split_statistics in statistics:
        where = f"data.{split_statistics.split}"
        problems += [_Problem(where, error) for error in split_statistics.problems]
    if tokenizers is not None:
        problems += _label_problems(config, tokenizers, statistics)
    worst_batch = None
    try:
        worst_batch = _worst_batch(statistics[0], config)
    except SeqloomError as error:
        problems.append(_Problem("data.train", error))
    findings += _error_findings(problems)
    for split_statistics in statistics:
        findings += split_warnings(split_statistics, config)
    return DatasetCheck(
        tuple(findings), tuple(statistics), worst_batch, _exit_code(problems), tuple(fits)
    )


def add_max_length_error(
    check: DatasetCheck, config: RunConfig, limits: Mapping[Side, Mapping[str, int]]
) -> DatasetCheck:
    """Add an error if sources or targets are longer than the model allows.

    The error is that of `train`, which checks the training and dev splits.

    limits: maximum numbers of source and target tokens, END included, by the name of the setting
    """
    problems: list[str] = []
    for statistics in check.statistics:
        if statistics.split != "test" and not statistics.problems:
            lengths = _kept_lengths(statistics, config)
            problems += max_length_problems(
                statistics.split, lengths, limits, config.data.is_long_text
            )
    error = max_length_error(problems)
    if error is None:
        return check
    findings = list(check.findings)
    # After the errors that `train` reports earlier, and before warnings.
    errors = [index for index, finding in enumerate(findings) if finding.level == "error"]
    place = errors[-1] + 1 if errors else 0
    findings[place:place] = _error_findings([_Problem("data", error)])
    return replace(check, findings=tuple(findings), exit_code=check.exit_code or error.exit_code)


def _kept_lengths(statistics: SplitStatistics, config: RunConfig) -> dict[Side, IntArray | None]:
    """Return the lengths of the sources and targets that the filters keep.

    For long text, return the lengths of the windows that `train` uses.
    """
    if statistics.target is None:
        return {}
    shape = window_shape(config.data, statistics.split)
    if shape is not None:
        text = np.broadcast_to(np.int64(0), statistics.target.tokens)  # needs no memory
        if statistics.split == "train":
            windows = training_windows(text, shape, 0, config.training.seed)
        else:
            windows = scoring_windows(text, shape, 0)
        return {"target": windows.sizes - 1}
    kept = np.asarray(statistics.kept)
    sources = statistics.source
    return {
        "source": None if sources is None else np.asarray(sources.lengths)[kept],
        "target": np.asarray(statistics.target.lengths)[kept],
    }


def _examine_series(config: RunConfig, task: ForecastConfig) -> DatasetCheck:
    """Check the data of a forecasting recipe: read and count the time windows of all splits."""
    problems: list[_Problem] = []
    statistics = []
    for split in _splits(config):
        split_statistics = SplitStatistics(split)
        try:
            split_statistics.examples = len(read_windows(config.data, task, split))
        except SeqloomError as error:
            split_statistics.problems.append(error)
            problems.append(_Problem(f"data.{split}", error))
        statistics.append(split_statistics)
    findings = tuple(_error_findings(problems))
    return DatasetCheck(findings, tuple(statistics), None, _exit_code(problems))


def _label_problems(
    config: RunConfig, tokenizers: Tokenizers, statistics: list[SplitStatistics]
) -> Iterator[_Problem]:
    for split_statistics in statistics:
        split = split_statistics.split
        source, target = split_statistics.source, split_statistics.target
        if target is None or split_statistics.problems:
            continue
        source_lengths = None if source is None else np.asarray(source.lengths)
        target_lengths = np.asarray(target.lengths)
        error = label_count_error(config, tokenizers, split, source_lengths, target_lengths)
        if error is not None:
            yield _Problem(f"data.{split}", error)


def _without_hold_outs(data: DataConfig, split: Split) -> DataConfig:
    """Return the data settings without the hold-outs of `split`.

    A hold-out is a part of the training data that is used as dev or test data. Reading it would
    only report the errors of the training data again.
    """
    corpora = corpora_of(data, split)
    kept = [corpus for corpus in corpora if not isinstance(corpus, HoldOutConfig)]
    return data.model_copy(update={split: tuple(kept)})


def _exit_code(problems: list[_Problem]) -> int:
    """Return the exit code for the first problem, because training would stop at this problem."""
    return problems[0].error.exit_code if problems else 0


def _splits(config: RunConfig) -> list[Split]:
    splits: tuple[Split, ...] = ("train", "dev", "test")
    return [split for split in splits if corpora_of(config.data, split)]


def _error_findings(problems: list[_Problem]) -> Iterator[Finding]:
    """Yield one finding for each distinct error message.

    An unreadable file causes the same error twice: for the table "text", when the tokenizers are
    trained, and for a table such as "data.train", when the split is read. This function yields only
    one finding, which names the table of the split.
    """
    locations: dict[str, str] = {}
    for problem in problems:
        # An error about missing files has one line per file.
        is_missing = isinstance(problem.error, NotFoundError)
        message = str(problem.error)
        for line in message.splitlines() if is_missing else [message]:
            if locations.get(line, "text") == "text":
                locations[line] = problem.where
    for message, where in locations.items():
        problem_text = message.removeprefix(f"{where}: ")
        yield Finding("error", where, problem_text, "fix this first: training cannot start")


def _worst_batch(train: SplitStatistics, config: RunConfig) -> WorstBatch | None:
    if train.target is None or not train.kept or train.problems:
        return None
    shape = window_shape(config.data, "train")
    if shape is not None:
        layout = WindowLayout(config.training.batch_tokens, shape.length)
        layout.refuse_too_long(None, np.asarray(train.target.lengths))
        windows = -(-train.target.tokens // shape.length)
        return WorstBatch(min(layout.rows, windows), 0, shape.length)
    kept = np.asarray(train.kept)
    targets = np.asarray(train.target.lengths)[kept]
    sources = None if train.source is None else np.asarray(train.source.lengths)[kept]
    batches = _first_epoch(sources, targets, config)
    worst = max(batches, key=lambda batch: len(batch) * (int(targets[batch].max()) + 1))
    source_length = 0 if sources is None else int(sources[worst].max()) + 1
    if config.data.has_vectors:
        source_length = int(frame_counts(config, "train")[kept][worst].max())
    return WorstBatch(
        rows=len(worst),
        source_length=source_length,
        target_length=int(targets[worst].max()) + 1,
    )


def _first_epoch(
    sources: IntArray | None, targets: IntArray, config: RunConfig
) -> Iterator[IntArray]:
    """Yield the batches of the first epoch as arrays of example indices.

    These are padded batches with one example per row (`PaddedLayout`). Training with another layout
    uses other batches.
    """
    budget, seed = config.training.batch_tokens, config.training.seed
    refuse_too_long(sources, targets, budget)
    shards = shards_per_epoch(len(targets))
    for shard in range(shards):
        examples = shard_examples(len(targets), shards, seed, shard)
        shard_sources = None if sources is None else sources[examples]
        for batch in plan_batches(shard_sources, targets[examples], budget, seed, shard):
            yield examples[batch]
