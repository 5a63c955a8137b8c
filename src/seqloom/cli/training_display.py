"""What `train` and `demo` print: the progress of training, then the commands to run next."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Column

from seqloom.cli.output import is_quiet, print_message, program_name, shows_progress
from seqloom.cli.process.progress import BAR_WIDTH, format_duration, format_status
from seqloom.cli.tables import format_perplexity, format_score, metric_label, stderr_console
from seqloom.core.launch import is_main_rank

if TYPE_CHECKING:
    from seqloom.config.schema.recipe import RunConfig
    from seqloom.training.event_log import Event, EventCallback
    from seqloom.training.loop import Summary

PLAIN_INTERVAL = 10.0
"""Minimum number of seconds between two plain lines about training steps."""
HIDDEN_METRICS = ("TER", "token accuracy")
"""Metrics that are written to metrics.jsonl but not printed, to keep the printed line short."""
MIN_WIDTH_FOR_BAR = 105
"""Minimum width of the terminal, in columns, at which the bar fits beside the numbers."""
STOP_REASONS = {
    "done": "Training is complete",
    "patience": "Training stopped early, because the dev score did not improve,",
    "time": "Training stopped at its time limit",
}


@contextmanager
def training_display() -> Iterator[EventCallback]:
    """Context manager that yields a callback. The callback prints training events.

    On a terminal it shows a progress bar, and elsewhere plain lines. With --quiet it prints nothing.
    Ranks other than the first get events only about data that they prepare, and print plain lines.
    """
    if is_quiet():
        yield lambda event: None
    elif shows_progress() and is_main_rank():
        display = LiveDisplay()
        with display.progress:
            yield display.show
    else:
        yield PlainDisplay().show


class ReadingMeter:
    """Describes the progress of reading and tokenising data, with rate and remaining time."""

    def __init__(self) -> None:
        self.start: tuple[str, float, int] | None = None  # split, time, examples

    def describe(self, data: Mapping[str, Any]) -> str:
        """Return a text: the number of examples read so far, the rate and the remaining time.

        If another process is preparing the same data, the text says that this process waits for it.

        data: the data of a `tokenise` event
        """
        if data["waits"]:
            return "waiting for another process that prepares the same data"
        done, total, now = data["examples"], data["total"], time.monotonic()
        if self.start is None or self.start[0] != data["split"]:
            self.start = (data["split"], now, done)
        _, started, first = self.start
        rate = (done - first) / (now - started) if now - started >= 1 else None
        left = (total - done) / rate if rate and total is not None else None
        return format_status(done, total, "examples", rate, left)


class PlainDisplay:
    """Prints the progress of training as plain lines.

    Prints a line for each evaluation and for each message of the training. Between these lines,
    prints a progress line at most every PLAIN_INTERVAL seconds.
    """

    def __init__(self) -> None:
        self.last_printed = time.monotonic()
        self.total_steps = 0
        self.reading = ReadingMeter()

    def show(self, event: Event) -> None:
        self.total_steps = event.data.get("steps", self.total_steps)
        description = self.reading.describe(event.data) if event.kind == "tokenise" else ""
        if event.kind == "step" or (event.kind == "tokenise" and not event.data["waits"]):
            if time.monotonic() - self.last_printed < PLAIN_INTERVAL:
                return
            self.last_printed = time.monotonic()
        if event.kind == "tokenise":
            print_message(f"reading {event.data['split']}: {description}")
        for line in event_lines(event, self.total_steps):
            print_message(line)


class LiveDisplay:
    """Shows a progress bar of training. Prints evaluations and other messages above the bar."""

    def __init__(self) -> None:
        console = stderr_console()
        self.has_bar = console.width >= MIN_WIDTH_FOR_BAR
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            *([BarColumn(bar_width=BAR_WIDTH)] if self.has_bar else []),
            TextColumn("{task.fields[status]}", markup=False),
            console=console,
            transient=True,
        )
        self.task = self.progress.add_task("preparing", total=None, status="")
        self.total_steps = 0
        self.reading = ReadingMeter()
        self.dev_score = ""

    def show(self, event: Event) -> None:
        self.total_steps = event.data.get("steps", self.total_steps)
        if event.kind == "tokenise":
            self.progress.update(
                self.task,
                description=f"reading {event.data['split']}",
                status=self.reading.describe(event.data),
            )
        elif event.kind == "step":
            description = f"step {event.step:,}/{self.total_steps:,}"
            fields = [*step_fields(event.data), *([self.dev_score] if self.dev_score else [])]
            used = len(description) + len("⠋ ") + 1 + (BAR_WIDTH + 1 if self.has_bar else 0)
            self.progress.update(
                self.task,
                description=description,
                completed=event.step,
                total=self.total_steps,
                status=fit_fields(fields, self.progress.console.width - used),
            )
        else:
            if event.kind == "evaluate":
                self.dev_score = f"dev {_main_score(event.data)}"
            for line in event_lines(event, self.total_steps):
                self.progress.console.print(line)


def fit_fields(fields: Sequence[str], width: int) -> str:
    """Join as many fields, from the first on, as fit into `width` columns."""
    line = ""
    for field in fields:
        longer = f"{line}  {field}" if line else field
        if len(longer) > width:
            break
        line = longer
    return line


def event_lines(event: Event, total_steps: int) -> list[str]:
    """Return the lines to print for an event, or an empty list if the event is not printed."""
    data = event.data
    match event.kind:
        case "start":
            return _start_lines(event)
        case "step":
            return [f"step {event.step:,}/{total_steps:,}  {'  '.join(step_fields(data))}"]
        case "evaluate":
            best = "  ← best" if data["best"] else ""
            line = f"step {event.step:,}  dev {_format_scores(data)}{best}"
            general = data.get("general")
            return [
                line,
                *([] if general is None else [f"  general {_format_scores(general)}"]),
                *_group_score_lines(data.get("parts", {})),
            ]
        case "note":
            return [f"note: {data['text']}"]
        case _:
            return []


def _format_scores(scores: dict[str, Any]) -> str:
    return "  ".join(
        f"{metric_label(key)} {format_score(key, value)}"
        for key, value in scores.items()
        if isinstance(value, float) and metric_label(key) not in HIDDEN_METRICS
    )


def _device(data: dict[str, Any]) -> str:
    """Return the device and, for a CPU, the number of threads."""
    threads = data.get("threads")
    if data["device"] != "cpu" or threads is None:
        return str(data["device"])
    return f"cpu with {threads} thread{'' if threads == 1 else 's'}"


def _start_lines(event: Event) -> list[str]:
    data = event.data
    lines = [
        f"{data['parameters']:,} parameters, {data['examples']:,} training and "
        f"{data['dev_examples']:,} dev examples, on {_device(data)}"
    ]
    groups = data.get("parts", [])
    total = sum(group["drawn"] for group in groups)
    lines += [
        f"  {group['name']}: {group['examples']:,} examples, {group['drawn']:,} per epoch "
        f"({group['drawn'] / total:.1%})"
        for group in groups
    ]
    dropped = data.get("corpus", {}).get("dropped", {})
    lines += [f"skipped {count:,} training examples: {reason}" for reason, count in dropped.items()]
    if event.step:
        lines.append(f"resuming at step {event.step:,}")
    return lines


def step_fields(data: dict[str, Any]) -> list[str]:
    """Return loss, perplexity (if the event has it), speed and remaining time, in this order."""
    return [
        f"loss {data['loss']:.3f}",
        *([f"ppl {format_perplexity(data['perplexity'])}"] if "perplexity" in data else []),
        f"{data['tokens_per_second']:,.0f} tokens/s",
        f"{format_duration(data['seconds_left'])} left",
    ]


def _group_score_lines(groups: dict[str, dict[str, float]]) -> list[str]:
    """Return a list of one line: the score of each group of the dev data.

    If there are no groups, the list is empty.

    groups: maps the name of a group to its scores by metric. Only the first metric is shown.
    """
    if not groups:
        return []
    metric = next(iter(next(iter(groups.values()))))
    scores = [f"{name} {format_score(metric, scores[metric])}" for name, scores in groups.items()]
    return [f"  {metric_label(metric)}: {'  '.join(scores)}"]


def _main_score(data: dict[str, Any]) -> str:
    """Return BLEU if the evaluation has it, else the loss."""
    name = "bleu" if "bleu" in data else "loss"
    return f"{metric_label(name)} {format_score(name, data[name])}"


def summary_lines(config: RunConfig, summary: Summary) -> list[str]:
    """Return lines that say how training ended, where the run folder is, and what to run next."""
    folder = shlex.quote(str(summary.folder))
    if summary.reason == "signal":
        return [
            f"Interrupted. {summary.folder} has a checkpoint of step {summary.step:,}. To resume, "
            "run:",
            f"  {program_name()} train {folder} --resume",
        ]
    metric = config.training.stopping.score
    best = ""
    if summary.best is not None:
        score = f"{metric_label(metric)} {format_score(metric, summary.best)}"
        best = f" The best dev score is {score}, at step {summary.best_step:,}."
    return [
        f"{STOP_REASONS[summary.reason]} at step {summary.step:,}.{best}",
        *_general_lines(summary),
        f"The run is in {summary.folder}. Next, try:",
        *(f"  {command}" for command in next_commands(config, folder)),
    ]


def _general_lines(summary: Summary) -> list[str]:
    """Return a list of one line: the score before training and the score of the best weights.

    Both are scores on the general dev set, which the setting `data.general` selects. The list is
    empty if there are no such scores.
    """
    before, best = summary.general_before, summary.general_best
    if not before or not best:
        return []
    name = "bleu" if "bleu" in best else "loss"
    return [
        f"General {metric_label(name)}: {format_score(name, before[name])} before training, "
        f"{format_score(name, best[name])} with the best weights."
    ]


def next_commands(config: RunConfig, folder: str) -> list[str]:
    """Return commands to try with a run.

    folder: the run folder, already quoted for the shell
    """
    from seqloom.config.schema.corpora import tag_display_name
    from seqloom.config.schema.tags import training_tags

    program = program_name()
    tags = training_tags(config.data)
    to = f" --to {shlex.quote(tag_display_name(tags[0]))}" if tags else ""
    predict = config.task.command.format(program=program, run=folder, to=to)
    if config.modality == "frames":
        predict = predict.replace("'…'", "FILE.csv")
    split = "" if config.data.test else " --split dev"
    evaluate = f"{program} evaluate {folder}{split}"
    return [predict, evaluate] if predict else [evaluate]


def exit_code(summary: Summary) -> int:
    """Return 0 or, if a signal ended training, 128 plus the number of the signal."""
    return 128 + summary.signal if summary.signal else 0
