"""Responses for the Train and Lab views of the web page: training logs and lab reports."""

from typing import Any, Literal

from pydantic import BaseModel, Field

TrainingState = Literal["running", "ended", "silent"]


class TrainingStatus(BaseModel):
    """The training state of a run."""

    run: str
    state: TrainingState = Field(
        description="silent: training has not ended, but its latest event is minutes old."
    )
    step: int
    steps: int | None
    time: float | None = Field(description="Time of the last event in Unix seconds.")


class TrainingsResponse(BaseModel):
    trainings: list[TrainingStatus]


class TrainingEventsResponse(BaseModel):
    """Training events from a run's metrics.jsonl."""

    run: str
    begin: int = Field(
        description="File offset of the first event, normally equal to `after`. If it is 0 "
        "although `after` was larger, training resumed from a checkpoint and rewrote the file: "
        "discard the events received so far."
    )
    next: int = Field(description="Value of `after` for the next request.")
    more: bool = Field(description="True if the file already contains further events.")
    events: list[dict[str, Any]]


class ReportSummary(BaseModel):
    claim: str
    size: str
    sentence: str
    state: str
    reason: str


class ReportsResponse(BaseModel):
    reports: list[ReportSummary]


class ReportResponse(BaseModel):
    report: dict[str, Any] = Field(description="Content of report.json from `seqloom lab`.")
