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
    """A report of `seqloom lab` in a few words."""

    claim: str = Field(description="Name of the claim.")
    size: str = Field(description="Size of the experiment: full, small or tiny.")
    sentence: str = Field(description="The claim.")
    state: str = Field(description="Verdict: confirmed, refuted or undecided.")
    reason: str = Field(description="Reasons for the verdict, separated by semicolons.")
    published: bool = Field(
        description="True if the report is part of seqloom; false if it was found next to a run."
    )


class ReportsResponse(BaseModel):
    """All reports, one for each claim."""

    reports: list[ReportSummary] = Field(description="The reports, sorted by claim.")


class ReportResponse(BaseModel):
    report: dict[str, Any] = Field(description="Content of report.json from `seqloom lab`.")
