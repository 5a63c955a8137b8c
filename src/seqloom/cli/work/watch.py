"""Training, watched: a live line in a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Column

from seqloom.cli.output import colour_allowed, tell
from seqloom.training.event_log import Event, EventCallback

PLAIN_EVERY = 10.0
"""Seconds between two plain lines about steps."""

UNTOLD = ("TER", "token accuracy")
"""Scores that are left to metrics.jsonl, so that an evaluation fits in a line."""
BAR = 20
WIDE = 105
"""Columns of a terminal that has room for a bar beside the numbers."""


@contextmanager
def watched(progress: str | None) -> Iterator[EventCallback]:
    """A listener for the events of a training: rich, plain or none; by itself if not said."""
    if progress is None:
        progress = "rich" if sys.stderr.isatty() else "plain"
    views: dict[str, Any] = {"rich": LiveView, "plain": PlainView}
    view = views[progress]() if progress in views else nullcontext(lambda event: None)
    with view as report:
        yield report


class PlainView:
    """One line for each evaluation and note, and now and then one about the steps."""

    def __init__(self) -> None:
        self.told = time.monotonic()
        self.steps = 0

    def __enter__(self) -> EventCallback:
        return self.show

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, event: Event) -> None:
        self.steps = event.data.get("steps", self.steps)
        if event.kind in ("step", "tokenise"):
            if time.monotonic() - self.told < PLAIN_EVERY:
                return
            self.told = time.monotonic()
        for line in lines_of(event, self.steps):
            tell(line)


class LiveView:
    """A bar that moves; what should stay is written above it."""

    def __init__(self) -> None:
        console = Console(
            stderr=True, no_color=not colour_allowed(sys.stderr), highlight=False, markup=False
        )
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            *([BarColumn(bar_width=BAR)] if console.width >= WIDE else []),
            TextColumn("{task.fields[news]}", markup=False),
            console=console,
            transient=True,
        )
        self.task = self.progress.add_task("preparing", total=None, news="")
        self.steps = 0
        self.score = ""

    def __enter__(self) -> EventCallback:
        self.progress.start()
        return self.show

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, event: Event) -> None:
        self.steps = event.data.get("steps", self.steps)
        if event.kind == "tokenise":
            self.progress.update(
                self.task,
                description=f"reading {event.data['split']}",
                news=f"{event.data['examples']:,} examples",
            )
        elif event.kind == "step":
            description = f"step {event.step:,}/{self.steps:,}"
            parts = [*step_news(event.data), *([self.score] if self.score else [])]
            width = self.progress.console.width
            taken = len(description) + len("⠋ ") + 1 + (BAR + 1 if width >= WIDE else 0)
            self.progress.update(
                self.task,
                description=description,
                completed=event.step,
                total=self.steps,
                news=fitting(parts, width - taken),
            )
        else:
            if event.kind == "evaluate":
                self.score = f"dev {main_score(event.data)}"
            for line in lines_of(event, self.steps):
                self.progress.console.print(line)


def fitting(parts: Sequence[str], room: int) -> str:
    """As many of the parts, from the first, as fit into a line of this length."""
    line = ""
    for part in parts:
        longer = f"{line}  {part}" if line else part
        if len(longer) > room:
            break
        line = longer
    return line


def lines_of(event: Event, steps: int) -> list[str]:
    """An event in words; empty if it is not worth any."""
    data = event.data
    match event.kind:
        case "tokenise":
            return [f"reading {data['split']}: {data['examples']:,} examples"]
        case "start":
            return _start_lines(event)
        case "step":
            return [f"step {event.step:,}/{steps:,}  {'  '.join(step_news(data))}"]
        case "evaluate":
            shown = "  ".join(
                f"{named(key)} {value:.2f}"
                for key, value in data.items()
                if isinstance(value, float) and named(key) not in UNTOLD
            )
            line = f"step {event.step:,}  dev {shown}{'  ← best' if data['best'] else ''}"
            return [line, *_part_scores(data.get("parts", {}))]
        case "note":
            return [f"note: {data['text']}"]
        case _:
            return []


def _start_lines(event: Event) -> list[str]:
    data = event.data
    lines = [
        f"{data['parameters']:,} parameters, {data['examples']:,} training and "
        f"{data['dev_examples']:,} dev examples, on {data['device']}"
    ]
    lines += _part_lines(data.get("parts", []))
    dropped = data.get("corpus", {}).get("dropped", {})
    lines += [f"left out {count:,} training examples: {why}" for why, count in dropped.items()]
    if event.step:
        lines.append(f"going on from step {event.step:,}")
    return lines


def _part_lines(parts: Sequence[dict[str, Any]]) -> list[str]:
    """What the training data is put together from, and how often each part is seen."""
    total = sum(part["drawn"] for part in parts)
    return [
        f"  {part['name']}: {part['examples']:,} examples, {part['drawn']:,} an epoch "
        f"({part['drawn'] / total:.1%})"
        for part in parts
    ]


def step_news(data: dict[str, Any]) -> list[str]:
    return [
        f"loss {data['loss']:.3f}",
        *([f"ppl {data['perplexity']:.4g}"] if "perplexity" in data else []),
        f"{data['tokens_per_second']:,.0f} tokens/s",
        f"{duration(data['seconds_left'])} left",
    ]


def _part_scores(parts: dict[str, dict[str, float]]) -> list[str]:
    """The most telling score of each part, in a line."""
    if not parts:
        return []
    score = next(iter(next(iter(parts.values()))))
    shown = [f"{name} {scores[score]:.2f}" for name, scores in parts.items()]
    return [f"  {named(score)}: {'  '.join(shown)}"]


def main_score(data: dict[str, Any]) -> str:
    """The one score to keep in sight: BLEU where there is one, else the loss."""
    name = "bleu" if "bleu" in data else "loss"
    return f"{named(name)} {data[name]:.4g}"


def named(score: str) -> str:
    """A score as people write it."""
    names = {"bleu": "BLEU", "chrf": "chrF", "chrf2": "chrF2", "ter": "TER", "macro-f1": "macro F1"}
    return names.get(score, score.replace("_", " ").replace("-", " "))


def duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
