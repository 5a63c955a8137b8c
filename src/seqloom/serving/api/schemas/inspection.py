"""Requests and responses of the inspection routes: attention, search, alternatives, explanations."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from seqloom.analysis.explain.lecture_example import (
    QUERY_STATE,
    STATES,
    TO_KEY,
    TO_QUERY,
    TO_VALUE,
    ExampleSelection,
    LectureScore,
)
from seqloom.analysis.matrices import Rows
from seqloom.serving.api.schemas.predictions import (
    JsonNumber,
    Output,
    RunRequest,
    StrictRequest,
    Text,
    TextResponse,
)


class InspectionRequest(RunRequest):
    """A request about one text, which is not split into sentences."""

    text: Text = Field(description="A sentence, or the prompt of a language model.")
    target: Text | None = Field(None, description="Target language.")
    beam: int | None = Field(None, ge=1, description="Beam width. Default: the run's setting.")
    length_penalty: float | None = Field(
        None,
        ge=0,
        le=10,
        description="Exponent of the length penalty. Default: the run's setting.",
    )
    length_counts_end: bool | None = Field(
        None,
        description="Count END in the length of an output. Default: the run's setting.",
    )


class AttentionRequest(InspectionRequest):
    output: Text | None = Field(
        None, description="Show the attention of this output. Default: the run's best one."
    )
    pieces: bool = Field(False, description="Rows and columns are tokens instead of words.")


class AttentionResponse(TextResponse):
    run: str
    output: Output
    outputs: list[str] = Field(description="Row labels: words or tokens of the output.")
    sources: list[str] = Field(description="Column labels: words or tokens of the source.")
    weights: list[list[float]] = Field(description="Mean over layers and heads.")
    heads: list[list[list[list[float]]]] = Field(
        description="Weights by layer, head, row and column."
    )


class TracedSearchRequest(InspectionRequest):
    n_best: int | None = Field(
        None, ge=1, description="Number of outputs. Default: the width of the search."
    )
    begin: list[int] = Field(
        [], description="First tokens of every output, without END. Default: none."
    )


class TracedSearchResponse(TextResponse):
    run: str
    outputs: list[Output]
    pieces: dict[str, str] = Field(description="Maps token index -> text of the token.")
    record: dict[str, Any] = Field(
        description="kind, width, length penalty, … and steps: the candidates of each step with "
        "token, parent (index in the previous step, -1 for none), log_probability, total (sum of "
        "log-probabilities), score, fate (kept, finished, stopped, dropped) and reason."
    )


class SearchTreeResponse(TextResponse):
    """A search as a tree, with the position of each node in a drawing."""

    run: str
    kind: str
    width: int
    length_penalty: float
    length_counts_end: bool = Field(description="True if END counts in the length.")
    outputs: list[Output]
    tree: dict[str, Any] = Field(
        description="top, bottom: the first and last row; spots: the nodes of each step with row, "
        "from (the row of the parent), label, p, log, total (sum of the log-probabilities), score, "
        "fate, reason, tokens (of the output up to this node), wins (true on the path of the best "
        "output) and rank (of the output that ends here, else 0); left_out: notes per step on "
        "candidates that are not shown; steps: all candidates, each with its text so far."
    )


class TokenChoice(BaseModel):
    token: int
    piece: str
    log_probability: JsonNumber


class AlternativesRequest(InspectionRequest):
    tokens: list[int] | None = Field(
        None, description="Tokens of an output. Default: those of the run's best output."
    )
    count: int = Field(8, ge=1, le=50, description="Number of alternatives per step.")


class AlternativesResponse(BaseModel):
    run: str
    tokens: list[int]
    pieces: list[str]
    steps: list[list[TokenChoice]] = Field(
        description="The likeliest tokens at each step, and at the step after the last token."
    )


class ContinueRequest(InspectionRequest):
    begin: list[int] = Field(
        min_length=1, description="First tokens of the output. Only the last may be END."
    )


class ContinueResponse(BaseModel):
    run: str
    output: Output


class InsteadRequest(InspectionRequest):
    step: int = Field(ge=1, description="Step of the token to replace, counted from 1.")
    piece: Text = Field(description="The replacement: a word or the text of a token.")


class InsteadResponse(BaseModel):
    run: str
    step: int
    original: Output
    changed: Output
    alternatives: list[TokenChoice]


class ExplainRequest(InspectionRequest):
    step: int = Field(ge=1, description="Step of the output token, counted from 1.")
    output: Text | None = Field(
        None, description="Explain this output. Default: the run's best one."
    )
    layer: int | None = Field(None, ge=1)
    head: int | None = Field(None, ge=1)


MAX_EXAMPLE_SIZE = 16
"""Maximum number of rows and of columns of a matrix in an `ExampleRequest`."""
MAX_EXAMPLE_NUMBER = 1e6
"""Maximum magnitude of a number in an `ExampleRequest`. Larger numbers could overflow."""
ExampleNumber = Annotated[float, Field(ge=-MAX_EXAMPLE_NUMBER, le=MAX_EXAMPLE_NUMBER)]
ExampleRow = Annotated[list[ExampleNumber], Field(min_length=1, max_length=MAX_EXAMPLE_SIZE)]
ExampleMatrix = Annotated[list[ExampleRow], Field(min_length=1, max_length=MAX_EXAMPLE_SIZE)]


def _to_lists(rows: Rows) -> list[list[float]]:
    return [list(row) for row in rows]


class ExampleRequest(StrictRequest):
    """Self-attention on small matrices. The default numbers are those of the lecture."""

    states: ExampleMatrix = Field(_to_lists(STATES), description="The states h, one row each.")
    to_query: ExampleMatrix = Field(
        _to_lists(TO_QUERY), description="The matrix Wq: one column for each number of a state."
    )
    to_key: ExampleMatrix = Field(
        _to_lists(TO_KEY), description="The matrix Wk, which has the shape of Wq."
    )
    to_value: ExampleMatrix = Field(
        _to_lists(TO_VALUE), description="The matrix Wv: one column for each number of a state."
    )
    query: int = Field(
        QUERY_STATE, ge=1, description="Number of the state that attends, counted from 1."
    )
    score: LectureScore = Field(
        "dot",
        description="Score function: dot (q · k), identity (h · h), sqrt (q · k / √d), width "
        "(q · k / d), bilinear (hᵀ W h), nonlinear (σ(q) · σ(k)), additive (v · tanh(Wq h + Wk h)) "
        "or rbf (-γ‖q - k‖²).",
    )
    gamma: float = Field(1.0, gt=0, le=MAX_EXAMPLE_NUMBER, description="γ of the score rbf.")
    selection: ExampleSelection = Field(
        "softmax",
        description="How the context is computed: softmax (weighted mean of the values), argmax "
        "(the value whose key has the highest score), nearest (the value whose key is nearest to "
        "the query) or exact (the value whose key equals the query).",
    )


class ExplainResponse(TextResponse):
    run: str | None
    explanation: dict[str, Any] = Field(
        description="source, output, step, previous, answer, best, layer, head, and parts in the "
        "order of computation, each with chapter, name, formula, note, shape, labels and values."
    )
