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
from seqloom.config.run import RunConfig
from seqloom.core.errors import DataError
from seqloom.data.doctor import Findings, WorstBatch, examine
from seqloom.data.survey import Histogram, Side, Survey

_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
BAR = 40
"""Cells of the longest bar of a histogram."""
COPIES = 3
"""Logits, their softmax and their gradient are in memory together."""


def doctor(config: RunConfig, as_json: bool) -> int:
    """The exit code: 0, or 65 if there is anything that training cannot start with."""
    with _counting() as progress:
        found = examine(config, progress)
    if as_json:
        put(json.dumps(_record(found), ensure_ascii=False, indent=2))
    else:
        _show(stdout_console(), found, config)
    return DataError.exit_code if found.has_errors else 0


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


def _show(console: Console, found: Findings, config: RunConfig) -> None:
    for survey in found.surveys:
        console.print(Text(f"{survey.split}: {survey.examples:,} examples", "bold"))
        for name, side in _sides(survey):
            for line in histogram_lines(name, side, blocks=draws_blocks()):
                console.print(line, soft_wrap=True)
    if found.worst_batch is not None:
        console.print(_worst(found.worst_batch, config), soft_wrap=True)
    console.print()
    for finding in found.findings:
        head = Text.assemble((finding.level, _COLOURS[finding.level]), f"  {finding.where}: ")
        console.print(head.append(finding.what), soft_wrap=True)
        console.print(Text(f"  {finding.advice}", "dim"), soft_wrap=True)
    if not found.findings:
        console.print(Text("nothing to complain about", "green"))


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


def _worst(batch: WorstBatch, config: RunConfig) -> str:
    """The largest batch, and what its output layer alone needs."""
    size = getattr(config.text.target, "size", None)
    shape = f"{batch.rows} rows of {batch.source_length} source and {batch.target_length} target"
    if size is None:
        return f"largest training batch: {shape} tokens"
    mebibytes = COPIES * 4 * batch.rows * batch.target_length * size / 2**20
    return (
        f"largest training batch: {shape} tokens; "
        f"about {mebibytes:,.0f} MiB for its output layer over {size:,} pieces"
    )


def _record(found: Findings) -> dict[str, Any]:
    return {
        "findings": [asdict(finding) for finding in found.findings],
        "splits": [_split_record(survey) for survey in found.surveys],
        "worst_batch": None if found.worst_batch is None else asdict(found.worst_batch),
    }


def _split_record(survey: Survey) -> dict[str, Any]:
    sides = {
        name: {
            "tokens": side.tokens,
            "unknown": side.unknown,
            "histogram": dict(zip(map(str, Histogram.lows), side.histogram.counts, strict=True)),
        }
        for name, side in _sides(survey)
    }
    return {"split": survey.split, "examples": survey.examples, **sides}
