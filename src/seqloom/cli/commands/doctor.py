"""The command `seqloom doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

from seqloom.cli.options import Json, ParentFolder, Recipe, Settings
from seqloom.cli.output import print_json
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.progress import progress_bar
from seqloom.cli.recipe_settings import resolve_recipe
from seqloom.cli.tables import stdout_console, supports_unicode

if TYPE_CHECKING:
    from seqloom.config.schema.recipe import RunConfig
    from seqloom.data.checks.doctor import WorstBatch
    from seqloom.data.checks.statistics import TokenStatistics
    from seqloom.data.checks.vocabulary_fit import VocabularyFit
    from seqloom.data.example import Split
    from seqloom.jobs.recipe_check import RecipeCheck
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

    from seqloom.jobs.recipe_check import check_recipe

    with progress_bar("learning vocabularies", "examples") as show:
        check = check_recipe(config, lambda split, done: show(done, None, f"reading {split}"))
    if json:
        print_json(check.to_json(), indent=2)
    else:
        _print_check(stdout_console(), check)
    raise typer.Exit(check.dataset.exit_code)


def _print_check(console: Console, check: RecipeCheck) -> None:
    config, findings = check.config, check.dataset
    for statistics in findings.statistics:
        complete = findings.is_complete(statistics)
        count = f"{statistics.examples:,} examples" if complete else "cannot be read completely"
        console.print(Text(f"{statistics.split}: {count}", "bold"))
        for line in _file_lines(config, statistics.split):
            console.print(Text(line, "dim"), soft_wrap=True)
        for name, side in statistics.sides() if complete else ():
            for line in histogram_lines(name, side, unicode=supports_unicode()):
                console.print(line, soft_wrap=True)
    if findings.worst_batch is not None:
        console.print(
            _describe_batch(findings.worst_batch, check.memory, config.data.has_vectors),
            soft_wrap=True,
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


def _describe_batch(batch: WorstBatch, memory: StepMemory | None, has_vectors: bool) -> str:
    unit = "frames" if has_vectors else "source"
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
