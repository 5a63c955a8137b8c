"""The command `seqloom doctor`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from seqloom.cli.options import Json, ParentFolder, Recipe, Settings
from seqloom.cli.output import print_json
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.progress import progress_bar
from seqloom.cli.recipe_settings import resolve_recipe
from seqloom.cli.tables import stdout_console, supports_unicode
from seqloom.core.errors import SeqloomError

if TYPE_CHECKING:
    from seqloom.config.schema.recipe import RunConfig
    from seqloom.data.checks.doctor import DatasetCheck, WorstBatch
    from seqloom.data.checks.statistics import SplitStatistics, TokenStatistics
    from seqloom.data.checks.vocabulary_fit import VocabularyFit
    from seqloom.data.corpus.vocabularies import Tokenizers
    from seqloom.data.example import Split
    from seqloom.models.seq2seq import Model
    from seqloom.tasks.task import Task
    from seqloom.training.memory_estimate import StepMemory

LEVEL_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
MAX_LISTED_FILES = 20
"""Maximum number of files that are listed for a split."""
BAR_WIDTH = 40
"""Width of the longest bar of a histogram, in columns."""


def doctor(
    recipe: Recipe, parent: ParentFolder = None, settings: Settings = None, json: Json = False
) -> None:
    """Check the data of a recipe before training.

    Reports parallel files with different numbers of lines, empty and very long lines, lines that are
    longer than the model allows, duplicates, unknown tokens, test sentences that are also in the
    training data, a histogram of lengths, and the memory that the largest batch needs. With --from
    RUN, also reports how well the vocabulary of that run fits the data. If there are errors, the exit
    code is the one that `train` returns for the first error: for example 66 for a missing file, 65
    for data that cannot be used, or 78 for a setting that is not valid.
    """
    set_interruption_message(
        lambda: (
            "Interrupted. The check is incomplete and has no result. To repeat it, run: "
            f"{current_command()}"
        )
    )
    config = resolve_recipe(recipe, settings, parent).config

    from seqloom.data.checks.doctor import add_max_length_error, examine

    task = _parent_task(config)
    with progress_bar("learning vocabularies", "examples") as show:
        findings = examine(
            config,
            lambda split, done: show(done, None, f"reading {split}"),
            _tokenizers(task),
        )
        memory = None
        if (built := _build_model(config, findings, task)) is not None:
            task, model = built
            findings = add_max_length_error(
                findings, config, {"source": model.source_limits, "target": model.target_limits}
            )
            memory = _measure_memory(findings.worst_batch, task, model)
    if json:
        print_json(_to_json(config, findings, memory), indent=2)
    else:
        _print_findings(stdout_console(), config, findings, memory)
    raise typer.Exit(findings.exit_code)


def _parent_task(config: RunConfig) -> Task | None:
    """Return the task of the run to fine-tune, including its vocabulary.

    Returns None if the recipe does not fine-tune a run.
    """
    from seqloom.training.fine_tuning.start import load_start

    return None if config.training.start is None else load_start(config, config.training.start).task


def _tokenizers(task: Task | None) -> Tokenizers | None:
    """Return the tokenizers of a task; None if there is no task or it has no tokenizers."""
    from seqloom.data.corpus.vocabularies import Tokenizers
    from seqloom.tasks.token_task import TokenTask

    if not isinstance(task, TokenTask):
        return None
    return Tokenizers(task.source_tokenizer, task.target_tokenizer)


def _build_model(
    config: RunConfig, findings: DatasetCheck, task: Task | None
) -> tuple[Task, Model] | None:
    """Return the task and the model of a recipe.

    task: the task of the run to fine-tune. None: build the task, with its vocabulary, from the data

    Returns None if the data has no targets with tokens, or if the model cannot be built.
    """
    from seqloom.models.build import build_model
    from seqloom.tasks.build import learn_task

    if all(statistics.target is None for statistics in findings.statistics):
        return None
    try:
        task = task or learn_task(config)
        return task, build_model(config.model, task.signature)
    except SeqloomError:
        return None  # the dataset check reports why the model cannot be built


def _measure_memory(batch: WorstBatch | None, task: Task, model: Model) -> StepMemory | None:
    """Return the memory that a training step with this batch needs.

    Returns None if there is no batch, or the batch is too long for the model.
    """
    from seqloom.training.memory_estimate import blank_batch, step_memory

    if batch is None:
        return None
    lengths = (batch.source_length, batch.target_length)
    limits = (model.max_source_length, model.max_target_length)
    if any(
        limit is not None and length > limit for limit, length in zip(limits, lengths, strict=True)
    ):
        return None
    return step_memory(model, task, blank_batch(task.signature, batch.rows, *lengths))


def _print_findings(
    console: Console, config: RunConfig, findings: DatasetCheck, memory: StepMemory | None
) -> None:
    for statistics in findings.statistics:
        complete = _is_complete(statistics, findings)
        count = f"{statistics.examples:,} examples" if complete else "cannot be read completely"
        console.print(Text(f"{statistics.split}: {count}", "bold"))
        for line in _file_lines(config, statistics.split):
            console.print(Text(line, "dim"), soft_wrap=True)
        for name, side in _sides(statistics) if complete else ():
            for line in histogram_lines(name, side, unicode=supports_unicode()):
                console.print(line, soft_wrap=True)
    if findings.worst_batch is not None:
        console.print(
            _describe_batch(findings.worst_batch, memory, config.data.has_frames), soft_wrap=True
        )
    for fit in findings.vocabulary_fits:
        console.print(_describe_fit(fit), soft_wrap=True)
    console.print()
    for finding in findings.findings:
        level = (finding.level, LEVEL_STYLES[finding.level])
        problem = Text.assemble(level, f"  {finding.where}: {finding.what}")
        console.print(problem, soft_wrap=True)
        console.print(Text(f"  {finding.advice}", "dim"), soft_wrap=True)
    if not findings.findings:
        console.print(Text("No problems were found.", "green"))


def _file_lines(config: RunConfig, split: Split) -> list[str]:
    """Return the paths of the text files of a split, one per line.

    After MAX_LISTED_FILES files, a last line tells how many more files there are.
    """
    from seqloom.data.readers.splits import split_files

    files = split_files(config.data, split)
    lines = [f"  {path}" for path in files[:MAX_LISTED_FILES]]
    more = len(files) - MAX_LISTED_FILES
    return [*lines, f"  … and {more:,} more files"] if more > 0 else lines


def _is_complete(statistics: SplitStatistics, findings: DatasetCheck) -> bool:
    """Return True if the statistics cover the whole split, False if they may cover only a part.

    Returns False if the split has errors. Also returns False if the split is empty and the training
    data has errors: the split may be a held-out part of the training data that could not be read.
    """
    empty = not statistics.examples and findings.statistics[0].problems
    return not statistics.problems and not empty


def _sides(statistics: SplitStatistics) -> list[tuple[str, TokenStatistics]]:
    sides = (("source", statistics.source), ("target", statistics.target))
    return [(name, side) for name, side in sides if side is not None and len(side.lengths)]


def histogram_lines(name: str, side: TokenStatistics, unicode: bool) -> list[str]:
    """Return the lines to print about the sources, or the targets, of a split.

    The first line has the number of tokens. The other lines are a histogram of the lengths.

    name: "source" or "target"
    """
    from seqloom.data.checks.statistics import LengthHistogram

    counts = side.histogram.counts
    largest = max(*counts, 1)
    mean = side.tokens / len(side.lengths)
    unknown = f", {side.unknown_share:.2%} unknown" if side.unknown else ""
    lines = [f"  {name}: {side.tokens:,} tokens, {mean:.1f} per line{unknown}"]
    filled = [index for index, count in enumerate(counts) if count]
    highs = [*(low - 1 for low in LengthHistogram.lows[1:]), None]
    ranges = list(zip(LengthHistogram.lows, highs, counts, strict=True))
    for low, high, count in ranges[filled[0] : filled[-1] + 1]:
        label = f"{low}+" if high is None else str(low) if low == high else f"{low} to {high}"
        lines.append(f"    {label:>10} {histogram_bar(count / largest, unicode)} {count:,}")
    return lines


def histogram_bar(share: float, unicode: bool) -> str:
    """Return a bar of characters. Its width is `share` times BAR_WIDTH columns.

    unicode: use block characters, with a resolution of 1/8 column
    """
    if not unicode:
        return "#" * max(round(share * BAR_WIDTH), 1 if share else 0)
    eighths = max(round(share * BAR_WIDTH * 8), 1 if share else 0)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _describe_batch(batch: WorstBatch, memory: StepMemory | None, has_frames: bool) -> str:
    unit = "frames" if has_frames else "source"
    source = f"{batch.source_length} {unit} and " if batch.source_length else ""
    shape = f"{batch.rows} rows of {source}{batch.target_length} target tokens"
    if memory is None:
        return f"largest training batch: {shape}"
    return (
        f"largest training batch: {shape}; a training step needs about "
        f"{_mebibytes(memory.total)} MiB ({_mebibytes(memory.activations)} for activations, "
        f"{_mebibytes(memory.weights)} for weights, gradients and optimiser state)"
    )


def _describe_fit(fit: VocabularyFit) -> str:
    new, parent = fit.new, fit.parent
    line = (
        f"vocabulary of the parent, {fit.side}: {new.pieces_per_word:.2f} pieces per word, "
        f"{new.unknown_share:.2%} unknown"
    )
    if parent is None:
        return f"{line} (the files of the parent's data are missing)"
    return (
        f"{line}; in the parent's data {parent.pieces_per_word:.2f} pieces per word, "
        f"{parent.unknown_share:.2%} unknown"
    )


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.0f}"


def _to_json(
    config: RunConfig, findings: DatasetCheck, memory: StepMemory | None
) -> dict[str, Any]:
    return {
        "findings": [asdict(finding) for finding in findings.findings],
        "splits": [
            _split_to_json(config, statistics, findings) for statistics in findings.statistics
        ],
        "worst_batch": None if findings.worst_batch is None else asdict(findings.worst_batch),
        "memory_bytes": None if memory is None else asdict(memory),
        "vocabulary_fit": [_fit_to_json(fit) for fit in findings.vocabulary_fits],
    }


def _fit_to_json(fit: VocabularyFit) -> dict[str, Any]:
    counts = {"new": fit.new, "parent": fit.parent}
    return {"side": fit.side} | {
        name: None if each is None else {**asdict(each), "pieces_per_word": each.pieces_per_word}
        for name, each in counts.items()
    }


def _split_to_json(
    config: RunConfig, statistics: SplitStatistics, findings: DatasetCheck
) -> dict[str, Any]:
    from seqloom.data.checks.statistics import LengthHistogram
    from seqloom.data.readers.splits import split_files

    files = [str(path) for path in split_files(config.data, statistics.split)]
    record: dict[str, Any] = {"split": statistics.split, "files": files, "examples": None}
    if not _is_complete(statistics, findings):
        return record
    sides = {
        name: {
            "tokens": side.tokens,
            "unknown": side.unknown,
            "histogram": dict(
                zip(map(str, LengthHistogram.lows), side.histogram.counts, strict=True)
            ),
        }
        for name, side in _sides(statistics)
    }
    return {**record, "examples": statistics.examples, **sides}
