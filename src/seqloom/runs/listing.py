"""Finds run folders and reads what a list of runs shows. Needs no torch.

The integrity of the files is not checked.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seqloom.config.loading.loader import load_run_recipe
from seqloom.config.schema.data import SplitConfig
from seqloom.core.errors import SeqloomError
from seqloom.core.storage import MANIFEST
from seqloom.runs.integrity import CONFIG
from seqloom.runs.recipe import read_events

Event = dict[str, Any]
"""One line of the event log."""
STATUS = {
    "done": "finished",
    "patience": "stopped early",
    "time": "time limit",
    "signal": "interrupted",
}
"""Status of a run by the reason for which training ended."""
NAMED_BY = ("source", "target", "path", "captions", "recordings", "task", "pairs", "name")
"""Settings of a corpus that say which data it reads."""


@dataclass(frozen=True)
class ListedRun:
    """A run in a list of runs.

    task:    kind of the task; None if the recipe cannot be read
    data:    the training corpora
    step:    last step in the event log
    steps:   number of steps that the recipe asks for
    status:  why training ended; "not finished" if the event log contains no reason
    score:   name of the score that selects the best weights
    best:    best value of this score on the dev split; None before the first evaluation
    changed: time of the last event, in ISO 8601; None if there are no events
    problem: why the recipe cannot be read; None if it can
    """

    folder: str
    task: str | None = None
    data: str | None = None
    step: int = 0
    steps: int | None = None
    status: str = "not finished"
    score: str | None = None
    best: float | None = None
    best_step: int | None = None
    changed: str | None = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def find_runs(root: Path) -> Iterator[Path]:
    """Yield the run folders in `root` and below, sorted by name. `root` itself can be a run.

    Hidden folders, which contain caches and incomplete folders, are not searched. A link is followed
    only if it leads to a run, because links can form cycles.
    """
    if _is_run(root):
        yield root
        return
    for child in sorted(root.iterdir()):
        is_searched = child.is_dir() and not child.name.startswith(".")
        if is_searched and (_is_run(child) or not child.is_symlink()):
            yield from find_runs(child)


def _is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and (folder / MANIFEST).is_file()


def read_listed_run(folder: Path) -> ListedRun:
    """Read the recipe and the event log of a run.

    If the recipe cannot be read, the field `problem` of the result says why. No error is raised.
    """
    # A training in progress may have written a part of the last event.
    events = [event for event in read_events(folder) if "step" in event and "time" in event]
    listed = ListedRun(
        folder=str(folder),
        step=max((event["step"] for event in events), default=0),
        status=_status(events),
        changed=format_time(events[-1]["time"]) if events else None,
    )
    try:
        config = load_run_recipe(folder / CONFIG).config
    except SeqloomError as error:
        return replace(listed, problem=str(error))
    name = config.training.stopping.score
    best: Event = next((event for event in reversed(events) if event.get("best") is True), {})
    return replace(
        listed,
        task=config.task.kind,
        data=", ".join(map(describe_corpus, config.data.train)),
        steps=config.training.steps,
        score=name,
        best=best.get(name),
        best_step=best.get("step"),
    )


def _status(events: list[Event]) -> str:
    """Return why training ended, or "not finished".

    A run is finished if the last event is the end of training. Events of kind "note" are ignored.
    A run that was resumed after its end is not finished, because other events follow.
    """
    last: Event = next((event for event in reversed(events) if event.get("event") != "note"), {})
    return STATUS.get(str(last.get("reason")), "not finished")


def format_time(seconds: float) -> str:
    """Return a time in ISO 8601, in UTC.

    seconds: Unix time
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def describe_corpus(corpus: SplitConfig) -> str:
    """Return a short text: the kind of a corpus, and the names or paths of its data."""
    values = []
    for name in NAMED_BY:
        value = getattr(corpus, name, None)
        values += [str(item) for item in (value if isinstance(value, tuple) else (value,)) if item]
    return " ".join([corpus.kind, *values])
