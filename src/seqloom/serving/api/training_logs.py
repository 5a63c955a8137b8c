"""The progress of training, also while training is running.

GET /api/trainings returns the training state of each run, and GET /api/trainings/{run} the event
log of one run.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import fastapi
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from seqloom.serving.errors import ERROR_RESPONSES, ApiError
from seqloom.serving.server.service import WITH_KEY, ServiceDependency

EVENT_LOG = "metrics.jsonl"
MAX_BYTES = 512 * 1024
"""Maximum number of bytes of the event log in one response."""
TAIL_BYTES = 64 * 1024
"""Number of bytes at the end of the event log that `training_status` reads."""
SILENT_SECONDS = 180.0
"""A training run without an event for this many seconds is reported as silent."""

router = APIRouter(prefix="/api", dependencies=WITH_KEY, responses=ERROR_RESPONSES, tags=["page"])


TrainingState = Literal["running", "ended", "silent"]


class TrainingStatus(BaseModel):
    """State of a training run: whether it is running, and its latest step."""

    run: str = Field(description="Name of the run.")
    state: TrainingState = Field(
        description="running, ended, or silent: training has not ended, but its latest event is "
        "minutes old."
    )
    step: int = Field(description="Last completed step.")
    steps: int | None = Field(description="Number of steps of the whole training, if known.")
    time: float | None = Field(description="Time of the last event in Unix seconds.")


class TrainingsResponse(BaseModel):
    """Training states of all runs."""

    trainings: list[TrainingStatus] = Field(description="Runs that have an event log.")


class TrainingEventsResponse(BaseModel):
    """Training events from a run's metrics.jsonl."""

    run: str = Field(description="Name of the run.")
    begin: int = Field(
        description="File offset of the first event, normally equal to `after`. If it is 0 "
        "although `after` was larger, training resumed from a checkpoint and rewrote the file: "
        "discard the events received so far."
    )
    next: int = Field(description="Value of `after` for the next request.")
    more: bool = Field(description="True if the file already contains further events.")
    events: list[dict[str, Any]] = Field(description="The events, oldest first.")


@router.get("/trainings")
async def get_trainings(service: ServiceDependency) -> TrainingsResponse:
    """Return the training state of every run that has an event log."""

    def read_all() -> list[TrainingStatus]:
        return [
            training_status(loaded.name, loaded.run.folder)
            for loaded in service.catalogue.runs
            if has_event_log(loaded.run.folder)
        ]

    return TrainingsResponse(trainings=await asyncio.to_thread(read_all))


@router.get("/trainings/{run}")
async def get_training_events(
    run: Annotated[str, fastapi.Path(description="Name of the run.")],
    service: ServiceDependency,
    after: Annotated[
        int, Query(ge=0, lt=2**53, description="File offset; 0 for the beginning of the log.")
    ] = 0,
) -> TrainingEventsResponse:
    """Return the training events after a file offset.

    To follow the training, repeat the request with the offset `next` of the previous response.
    """
    folder = service.catalogue.get(run).run.folder
    if not has_event_log(folder):
        raise ApiError(404, "not-found", f"the run '{run}' has no training log")
    return await asyncio.to_thread(read_events, run, folder, after)


def has_event_log(folder: Path) -> bool:
    """True if the run folder has an event log that is a file, not a symbolic link."""
    path = folder / EVENT_LOG
    return path.is_file() and not path.is_symlink()


def read_events(run: str, folder: Path, after: int) -> TrainingEventsResponse:
    """Read the events after a file offset.

    Reads at most MAX_BYTES bytes, and only complete lines. If the file is shorter than the offset,
    reads from the beginning of the file.

    run:   name of the run, for the response
    after: the file offset, in bytes
    """
    with (folder / EVENT_LOG).open("rb") as file:
        size = file.seek(0, 2)
        begin = after if after <= size else 0
        file.seek(begin)
        content = file.read(MAX_BYTES)
    lines = content[: content.rfind(b"\n") + 1]
    return TrainingEventsResponse(
        run=run,
        begin=begin,
        next=begin + len(lines),
        more=bool(lines) and begin + len(content) < size,
        events=list(_parse_events(lines)),
    )


def training_status(run: str, folder: Path) -> TrainingStatus:
    """Return the training state of a run, read from the end of its event log."""
    with (folder / EVENT_LOG).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        events = list(_parse_events(file.read()))
    last = events[-1] if events else {}
    steps = next((event["steps"] for event in reversed(events) if "steps" in event), None)
    return TrainingStatus(
        run=run,
        state=_state_after(last),
        step=int(last.get("step", 0)),
        steps=steps,
        time=last.get("time"),
    )


def _state_after(last_event: dict[str, Any]) -> TrainingState:
    if last_event.get("event") == "end":
        return "ended"
    recent = time.time() - last_event.get("time", 0.0) < SILENT_SECONDS
    return "running" if recent else "silent"


def _parse_events(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events. Skips lines that are not JSON objects, such as an incomplete first line."""
    for line in content.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
