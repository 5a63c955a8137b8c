"""What the doctor found, for people and for programs."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.text import Text

from seqloom.cli.output import colour_allowed, put
from seqloom.cli.work.tables import draws_blocks, stdout_console
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import SeqloomError
from seqloom.data.doctor import Findings, WorstBatch, examine
from seqloom.data.survey import Histogram, Side, Survey
from seqloom.models.build import build_model
from seqloom.tasks.build import learn_task
from seqloom.training.memory_estimate import StepMemory, blank_batch, step_memory

_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
BAR = 40
"""Cells of the longest bar of a histogram."""


def doctor(config: RunConfig, as_json: bool) -> int:
    """The exit code: that of training, if there is anything it cannot start with."""
    with _counting() as progress:
        found = examine(config, progress)
        memory = _memory(config, found.worst_batch)
    if as_json:
        put(json.dumps(_record(found, memory), ensure_ascii=False, indent=2))
    else:
        _show(stdout_console(), found, memory)
    return found.exit_code


@contextmanager
def _counting() -> Iterator[Any]:
    """How many examples have been read, on stderr, where somebody watches."""
    console = Console(
        stderr=True, no_color=not colour_allowed(sys.stderr), quiet=not sys.stderr.isatty()
    )
    columns = (SpinnerColumn(), TextColumn("reading: {task.completed:,} examples"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading", total=None)
        yield lambda examples: progress.update(task, completed=examples)


def _show(console: Console, found: Findings, memory: StepMemory | None) -> None:
    for survey in found.surveys:
        whole = _can_be_read(survey, found)
        count = f"{survey.examples:,} examples" if whole else "cannot be read whole"
        console.print(Text(f"{survey.split}: {count}", "bold"))
        for name, side in _sides(survey) if whole else ():
            for line in histogram_lines(name, side, blocks=draws_blocks()):
                console.print(line, soft_wrap=True)
    if found.worst_batch is not None:
        console.print(_worst(found.worst_batch, memory), soft_wrap=True)
    console.print()
    for finding in found.findings:
        head = Text.assemble((finding.level, _COLOURS[finding.level]), f"  {finding.where}: ")
        console.print(head.append(finding.what), soft_wrap=True)
        console.print(Text(f"  {finding.advice}", "dim"), soft_wrap=True)
    if not found.findings:
        console.print(Text("nothing to complain about", "green"))


def _can_be_read(survey: Survey, found: Findings) -> bool:
    """Counts of a part would mislead; what is held out is as whole as what it is taken from."""
    empty = not survey.examples and found.surveys[0].problems
    return not survey.problems and not empty


def _sides(survey: Survey) -> list[tuple[str, Side]]:
    sides = (("source", survey.source), ("target", survey.target))
    return [(name, side) for name, side in sides if side is not None and len(side.lengths)]


def histogram_lines(name: str, side: Side, blocks: bool) -> list[str]:
    """Lengths in tokens, a bar for each range of them."""
    counts = side.histogram.counts
    most = max(*counts, 1)
    bounds = [*(low - 1 for low in Histogram.lows[1:]), None]
    mean = side.tokens / len(side.lengths)
    unknown = f", {side.unknown_share:.2%} unknown" if side.unknown else ""
    lines = [f"  {name}: {side.tokens:,} tokens, {mean:.1f} a line{unknown}"]
    filled = [place for place, count in enumerate(counts) if count]
    ranges = list(zip(Histogram.lows, bounds, counts, strict=True))
    for low, high, count in ranges[filled[0] : filled[-1] + 1]:
        where = f"{low}+" if high is None else str(low) if low == high else f"{low} to {high}"
        lines.append(f"    {where:>10} {bar_of(count / most, blocks)} {count:,}")
    return lines


def bar_of(share: float, blocks: bool) -> str:
    """A bar of up to BAR cells, drawn to the eighth of a cell where that is possible."""
    if not blocks:
        return "#" * max(round(share * BAR), 1 if share else 0)
    eighths = max(round(share * BAR * 8), 1 if share else 0)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _worst(batch: WorstBatch, memory: StepMemory | None) -> str:
    """The largest batch, and what a step with it needs."""
    source = f"{batch.source_length} source and " if batch.source_length else ""
    shape = f"{batch.rows} rows of {source}{batch.target_length} target tokens"
    if memory is None:
        return f"largest training batch: {shape}"
    return (
        f"largest training batch: {shape}; a step with it needs about "
        f"{_mebibytes(memory.total)} MiB ({_mebibytes(memory.activations)} for what it computes, "
        f"{_mebibytes(memory.weights)} for weights, gradients and moments)"
    )


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.0f}"


def _memory(config: RunConfig, batch: WorstBatch | None) -> StepMemory | None:
    """Measured with the real model; None if it or its vocabulary cannot be built."""
    if batch is None:
        return None
    try:
        task = learn_task(config)
        model = build_model(config.model, task.signature)
    except SeqloomError:
        return None  # the findings say why
    lengths = (batch.source_length, batch.target_length)
    shape = blank_batch(task.signature, batch.rows, *lengths)
    limits = (model.max_source_length, model.max_target_length)
    if any(limit is not None and size > limit for limit, size in zip(limits, lengths, strict=True)):
        return None
    return step_memory(model, task, shape)


def _record(found: Findings, memory: StepMemory | None) -> dict[str, Any]:
    return {
        "findings": [asdict(finding) for finding in found.findings],
        "splits": [_split_record(survey, found) for survey in found.surveys],
        "worst_batch": None if found.worst_batch is None else asdict(found.worst_batch),
        "memory_bytes": None if memory is None else asdict(memory),
    }


def _split_record(survey: Survey, found: Findings) -> dict[str, Any]:
    sides = {
        name: {
            "tokens": side.tokens,
            "unknown": side.unknown,
            "histogram": dict(zip(map(str, Histogram.lows), side.histogram.counts, strict=True)),
        }
        for name, side in _sides(survey)
    }
    if not _can_be_read(survey, found):
        return {"split": survey.split, "examples": None}
    return {"split": survey.split, "examples": survey.examples, **sides}
