"""Train, and say what came of it."""

import shlex
from pathlib import Path

from seqloom.cli.output import program, tell
from seqloom.cli.work.watch import watched
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import tag_display_name, training_tags
from seqloom.training import loop
from seqloom.training.loop import Summary

_REASONS = {
    "done": "done",
    "patience": "stopped: the score got no better",
    "time": "stopped: the time was up",
}


def train(config: RunConfig, folder: Path, resume: bool, progress: str | None) -> int:
    """The exit code: 0, or 128 and the signal that ended it."""
    summary = train_watched(config, folder, resume, progress)
    for line in ending(config, summary):
        tell(line)
    return exit_code(summary)


def train_watched(config: RunConfig, folder: Path, resume: bool, progress: str | None) -> Summary:
    with watched(progress) as report:
        return loop.train(config, folder, resume=resume, report=report)


def exit_code(summary: Summary) -> int:
    return 128 + summary.signal if summary.signal else 0


def ending(config: RunConfig, summary: Summary) -> list[str]:
    """Where the run is and what to type next."""
    folder = shlex.quote(str(summary.folder))
    if summary.reason == "signal":
        return [
            f"interrupted; saved at step {summary.step:,}. To go on:",
            f"  {program()} train {folder}/config.toml --run {folder} --resume",
        ]
    score = config.training.stopping.score
    best = "" if summary.best is None else f", best {score} {summary.best:.4g}"
    return [
        f"{_REASONS[summary.reason]} at step {summary.step:,}{best} (step {summary.best_step:,})",
        f"the run is in {summary.folder}; next:",
        *(f"  {command}" for command in next_commands(config, folder)),
    ]


def next_commands(config: RunConfig, folder: str) -> list[str]:
    if config.task.kind == "language-model":
        return [
            f"{program()} complete {folder} --samples 5",
            f"{program()} evaluate {folder} --split dev",
        ]
    split = "" if config.data.test else " --split dev"
    tags = training_tags(config.data)
    to = f" --to {shlex.quote(tag_display_name(tags[0]))}" if tags else ""
    label, translate = (
        f"{program()} label {folder} '…'",
        f"echo '…' | {program()} translate {folder}{to}",
    )
    return [
        label if config.task.kind == "labels" else translate,
        f"{program()} evaluate {folder}{split}",
    ]
