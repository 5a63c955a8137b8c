"""What is asked and answered about how an output came about."""

from typing import Any

from pydantic import BaseModel, Field

from seqloom.serving.schema import AskedOfRun, Number, Output, Text


class LookRequest(AskedOfRun):
    """One text, read at once."""

    text: Text = Field(description="A sentence; of a language model, a beginning.")
    target: Text | None = Field(None, description="The language to translate into.")
    beam: int | None = Field(None, ge=1, description="Left out: as the run's recipe says.")
    length_exponent: float | None = Field(None, ge=0, le=10)


class AttentionRequest(LookRequest):
    output: Text | None = Field(None, description="Look at this output instead of the run's own.")
    pieces: bool = Field(False, description="By pieces, not merged to words.")


class AttentionAnswer(BaseModel):
    run: str
    output: Output
    outputs: list[str] = Field(description="Labels of the rows: words of the output, or pieces.")
    sources: list[str] = Field(description="Labels of the columns.")
    weights: list[list[float]] = Field(description="The mean over layers and heads.")
    heads: list[list[list[list[float]]]] = Field(description="Layer, head, row, column.")


class SearchRequest(LookRequest):
    n_best: int | None = Field(None, ge=1, description="Left out: as many as the search follows.")


class SearchAnswer(BaseModel):
    run: str
    outputs: list[Output]
    pieces: dict[str, str] = Field(description="What each token is called.")
    record: dict[str, Any] = Field(
        description="kind, width, length_exponent, … and steps: for each step its candidates with "
        "token, parent (its place in the step before; -1: none), log_probability, total, score, "
        "fate (kept, finished, stopped, dropped) and reason."
    )


class Choice(BaseModel):
    token: int
    piece: str
    log_probability: Number


class AlternativesRequest(LookRequest):
    tokens: list[int] | None = Field(
        None, description="The tokens of an output. Left out: of the run's best one."
    )
    count: int = Field(8, ge=1, le=50)


class AlternativesAnswer(BaseModel):
    run: str
    tokens: list[int]
    pieces: list[str]
    steps: list[list[Choice]] = Field(
        description="For each token, and for what follows the last, what could stand there."
    )


class ContinueRequest(LookRequest):
    begin: list[int] = Field(
        min_length=1, description="Tokens that the output begins with; END may be the last."
    )


class ContinueAnswer(BaseModel):
    run: str
    output: Output


class InsteadRequest(LookRequest):
    step: int = Field(ge=1, description="Counted from 1.")
    piece: Text = Field(description="A word, or a token by its name.")


class InsteadAnswer(BaseModel):
    run: str
    step: int
    original: Output
    changed: Output
    alternatives: list[Choice]


class ExplainRequest(LookRequest):
    step: int = Field(ge=1, description="Which token of the output, counted from 1.")
    output: Text | None = Field(None, description="Explain this output instead of the run's own.")
    layer: int | None = Field(None, ge=1)
    head: int | None = Field(None, ge=1)


class ExplainAnswer(BaseModel):
    run: str | None
    explanation: dict[str, Any] = Field(
        description="source, output, step, previous, answer, best, layer, head, and parts: each "
        "with chapter, name, formula, note, shape, labels and values, in the order in which they "
        "come about."
    )
