"""Responses for the Train and Lab views of the web page: training logs and lab reports."""

from typing import Any, Literal

from pydantic import BaseModel, Field

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


class ReportSummary(BaseModel):
    """Summary of a report of `seqloom lab`: the claim and its verdict."""

    claim: str = Field(description="Name of the claim.")
    size: str = Field(description="Size of the experiment: full, small or tiny.")
    sentence: str = Field(description="The claim.")
    state: str = Field(description="Verdict: confirmed, refuted or undecided.")
    reason: str = Field(description="Reasons for the verdict, separated by semicolons.")
    published: bool = Field(
        description="True if the report is part of seqloom; false if it was found next to a run."
    )


class ReportsResponse(BaseModel):
    """Summaries of the reports of `seqloom lab`, one for each claim."""

    reports: list[ReportSummary] = Field(description="The reports, sorted by claim.")


class ReportResponse(BaseModel):
    """One report of `seqloom lab`."""

    report: dict[str, Any] = Field(description="Content of report.json from `seqloom lab`.")
