"""What is wrong, or odd, with the data of a recipe."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from seqloom.config.data import DataConfig, HoldOutConfig, ParallelConfig, SyntheticConfig
from seqloom.config.run import RunConfig
from seqloom.config.task import ForecastConfig
from seqloom.core.errors import DataError, NotFoundError, SeqloomError
from seqloom.data.batching import Sizes, plan_batches, refuse_too_long, sizes_of
from seqloom.data.example import Split
from seqloom.data.labelled import label_problem
from seqloom.data.rounds import examples_of_round, rounds_in_epoch
from seqloom.data.series import read_windows
from seqloom.data.splits import corpora_of
from seqloom.data.survey import Survey, Tokenizers, survey
from seqloom.data.text_windows import WindowLayout, shape_of
from seqloom.data.vocabularies import learn_tokenizers

Level = Literal["error", "warning", "note"]

MANY_REPEATED = 0.1
MANY_IDENTICAL = 0.05
MANY_UNKNOWN = 0.01
FAR_OUT = 5
"""Times the length that 99 of 100 examples keep below: from there a length is extreme."""


@dataclass(frozen=True)
class Finding:
    """level: error (training cannot start), warning (look at it), note (good to know)"""

    level: Level
    where: str
    what: str
    advice: str


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
        findings += _about(found, config)
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


def _about(found: Survey, config: RunConfig) -> Iterator[Finding]:
    if config.data.is_running_text:  # of which lines are no examples
        yield from _unknowns(found)
        return
    yield from _taken_lines(found, config)
    yield from _repetitions(found, config)
    yield from _leaks(found)
    yield from _emptiness(found)
    yield from _unknowns(found)
    yield from _extremes(found)
    filtered = found.dropped - found.empty
    if filtered:
        listed = "; ".join(f"{reason}: {count}" for reason, count in filtered.items())
        yield Finding(
            "note",
            f"data.{found.split}",
            f"the filters leave out {filtered.total()} of {found.examples} examples ({listed})",
            "loosen data.filter if that is too many",
        )


def _taken_lines(found: Survey, config: RunConfig) -> Iterator[Finding]:
    for corpus in corpora_of(config.data, found.split):
        if isinstance(corpus, ParallelConfig) and (corpus.first_line > 1 or corpus.last_line):
            end = "the end" if corpus.last_line is None else f"line {corpus.last_line}"
            yield Finding(
                "note",
                f"data.{found.split}",
                f"{corpus.source} is read from line {corpus.first_line} to {end}, "
                f"{found.examples} examples in this split",
                "first_line and last_line say so; leave them out to read the whole file",
            )


def _repetitions(found: Survey, config: RunConfig) -> Iterator[Finding]:
    where = f"data.{found.split}"
    made_up = all(isinstance(c, SyntheticConfig) for c in corpora_of(config.data, found.split))
    if found.repeated_pairs:
        many = found.repeated_pairs > MANY_REPEATED * found.examples and not made_up
        yield Finding(
            "warning" if many else "note",
            where,
            f"{found.repeated_pairs} of {found.examples} examples are repeated word for word",
            "remove duplicates, unless you mean them to count more",
        )
    if found.repeated_sources > found.repeated_pairs and not config.data.merge_references:
        yield Finding(
            "note",
            where,
            f"{found.repeated_sources - found.repeated_pairs} of {found.examples} examples give "
            "another target for a source seen before",
            "when scoring, data.merge_references = true makes them references of one sentence",
        )
    if found.identical and not made_up:
        many = found.identical > MANY_IDENTICAL * found.examples
        yield Finding(
            "warning" if many else "note",
            where,
            f"{found.identical} of {found.examples} examples have a target equal to their source",
            "the model will learn to copy: remove what was left untranslated",
        )


def _leaks(found: Survey) -> Iterator[Finding]:
    if found.leaked_sources:
        yield Finding(
            "warning",
            found.first_leak,
            f"{found.leaked_sources} of {found.examples} {found.split} examples have a source that "
            f"is in the training split ({found.leaked_pairs} with the same target)",
            "scores will be too good: take them out of the training data",
        )


def _emptiness(found: Survey) -> Iterator[Finding]:
    if found.empty:
        listed = "; ".join(f"{kind}: {count}" for kind, count in found.empty.items())
        dropped = found.split == "train"
        yield Finding(
            "warning",
            found.first_empty,
            f"{found.empty.total()} of {found.examples} {found.split} examples are empty ({listed})",
            "they will be left out" if dropped else "they will be scored as they are",
        )


def _unknowns(found: Survey) -> Iterator[Finding]:
    for name, side in (("source", found.source), ("target", found.target)):
        if side is not None and side.unknown:
            yield Finding(
                "warning" if side.unknown_share > MANY_UNKNOWN else "note",
                f"data.{found.split}",
                f"{side.unknown_share:.2%} of {name} tokens are unknown "
                f"({side.unknown} of {side.tokens})",
                "use subwords, raise text.tokenizer.size, or look for strange characters",
            )


def _extremes(found: Survey) -> Iterator[Finding]:
    if found.target is None or not found.extremes:
        return
    longest = np.asarray(found.target.lengths)
    if found.source is not None:
        longest = np.maximum(longest, np.asarray(found.source.lengths))
    usual = float(np.percentile(longest, 99))
    for extreme in found.extremes:
        if extreme.longest > FAR_OUT * max(usual, 1):
            yield Finding(
                "warning",
                extreme.where,
                f"{extreme.longest} tokens, where 99 of 100 examples have {usual:.0f} or fewer",
                "look at the line; data.filter.max_source_tokens and max_target_tokens leave "
                "such examples out",
            )
