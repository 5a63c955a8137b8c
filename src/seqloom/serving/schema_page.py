"""What the page asks for beside everybody's API: trees, trainings, reports, examples."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from seqloom.serving.schema import Output

State = Literal["running", "ended", "silent"]


class TreeAnswer(BaseModel):
    """A search as a picture of it needs it."""

    run: str
    kind: str
    width: int
    length_exponent: float
    outputs: list[Output]
    tree: dict[str, Any] = Field(
        description="top and bottom in rows; spots of each step with row, from (the row of their "
        "parent), label, p, log, score, fate, reason, wins and rank; left_out of each step in "
        "words; steps: all candidates, each with the text up to it."
    )


class TrainingLine(BaseModel):
    """How the training of a run stands."""

    run: str
    state: State = Field(description="silent: it has not ended, but nothing was written lately.")
    step: int
    steps: int | None
    time: float | None = Field(description="When the last line was written, in Unix seconds.")


class TrainingsAnswer(BaseModel):
    trainings: list[TrainingLine]


class JournalAnswer(BaseModel):
    """Lines of metrics.jsonl."""

    run: str
    begin: int = Field(
        description="Where these lines begin. 0 though another place was asked for: training went "
        "back to a checkpoint, so forget what was read before."
    )
    next: int = Field(description="Ask for what comes after this place.")
    more: bool = Field(description="Is there more to read already?")
    events: list[dict[str, Any]]


class ReportLine(BaseModel):
    claim: str
    size: str
    sentence: str
    state: str
    reason: str


class ReportsAnswer(BaseModel):
    reports: list[ReportLine]


class ReportAnswer(BaseModel):
    report: dict[str, Any] = Field(description="report.json, as `seqloom lab` wrote it.")


class ExampleAnswer(BaseModel):
    """A made-up beginning, of the size that a run is used to."""

    run: str
    observed: list[list[float]]
    context: list[list[float]]
