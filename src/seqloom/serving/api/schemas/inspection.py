"""Requests and responses of the inspection routes: attention, search, alternatives, explanations."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from seqloom.analysis.attention_example import (
    QUERY_STATE,
    STATES,
    TO_KEY,
    TO_QUERY,
    TO_VALUE,
    ExampleSelection,
    LectureScore,
)
from seqloom.analysis.matrices import Rows
from seqloom.serving.api.schemas.option_fields import (
    OptionsRequest,
    StrictRequest,
    Text,
    with_option_fields,
)
from seqloom.serving.api.schemas.predictions import JsonNumber, Output, RunName, TextResponse


@with_option_fields("inspect")
class InspectionRequest(OptionsRequest):
    """A request about one text, which is not split into sentences."""

    text: Text = Field(description="A sentence, or the prompt of a language model.")
    target: Text | None = Field(None, description="Target language.")


class AttentionRequest(InspectionRequest):
    """A request for the attention weights of an output."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Das gefällt mir."}]})

    output: Text | None = Field(
        None, description="Show the attention of this output. Default: the run's best one."
    )
    pieces: bool = Field(False, description="Rows and columns are tokens instead of words.")


class AttentionResponse(TextResponse):
    """Attention weights of an output."""

    run: RunName
    output: Output = Field(description="The output whose attention is shown.")
    outputs: list[str] = Field(description="Row labels: words or tokens of the output.")
    sources: list[str] = Field(description="Column labels: words or tokens of the source.")
    weights: list[list[float]] = Field(description="Mean over layers and heads.")
    heads: list[list[list[list[float]]]] = Field(
        description="Weights by layer, head, row and column."
    )


class TracedSearchRequest(InspectionRequest):
    """A request for a search with all its steps."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Das gefällt mir.", "beam": 3}]}
    )

    n_best: int | None = Field(
        None, ge=1, description="Number of outputs. Default: the width of the search."
    )
    begin: list[int] = Field(
        [], description="First tokens of every output, without END. Default: none."
    )


class TracedSearchResponse(TextResponse):
    """The results of a search, and all candidates of each step."""

    run: RunName
    outputs: list[Output] = Field(description="Results of the search, best first.")
    pieces: dict[str, str] = Field(description="Maps token index -> text of the token.")
    record: dict[str, Any] = Field(
        description="kind, width, length penalty, … and steps: the candidates of each step with "
        "token, parent (index in the previous step, -1 for none), log_probability, total (sum of "
        "log-probabilities), score, fate (kept, finished, stopped, dropped) and reason."
    )


class SearchTreeResponse(TextResponse):
    """A search as a tree, with the position of each node in a drawing."""

    run: RunName
    kind: str = Field(description="Kind of search, such as beam.")
    width: int = Field(description="Number of hypotheses that the search keeps.")
    length_penalty: float = Field(description="Exponent of the length penalty.")
    length_counts_end: bool = Field(description="True if END counts in the length.")
    outputs: list[Output] = Field(description="Results of the search, best first.")
    tree: dict[str, Any] = Field(
        description="top, bottom: the first and last row; spots: the nodes of each step with row, "
        "from (the row of the parent), label, p, log, total (sum of the log-probabilities), score, "
        "fate, reason, tokens (of the output up to this node), wins (true on the path of the best "
        "output) and rank (of the output that ends here, else 0); left_out: notes per step on "
        "candidates that are not shown; steps: all candidates, each with its text so far."
    )


class TokenChoice(BaseModel):
    """A token with its probability."""

    token: int = Field(description="Vocabulary index of the token.")
    piece: str = Field(description="The token as text.")
    log_probability: JsonNumber = Field(description="Its log-probability; null for probability 0.")


class AlternativesRequest(InspectionRequest):
    """A request for the likeliest tokens at each step of an output."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Das gefällt mir.", "count": 5}]}
    )

    tokens: list[int] | None = Field(
        None, description="Tokens of an output. Default: those of the run's best output."
    )
    count: int = Field(8, ge=1, le=50, description="Number of alternatives per step.")


class AlternativesResponse(BaseModel):
    """The likeliest tokens at each step of an output."""

    run: RunName
    tokens: list[int] = Field(description="Tokens of the output as vocabulary indices.")
    pieces: list[str] = Field(description="Tokens of the output as text.")
    steps: list[list[TokenChoice]] = Field(
        description="The likeliest tokens at each step, and at the step after the last token."
    )


class ContinueRequest(InspectionRequest):
    """A request for an output that starts with given tokens."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Das gefällt mir.", "begin": [5]}]}
    )

    begin: list[int] = Field(
        min_length=1, description="First tokens of the output. Only the last may be END."
    )


class ContinueResponse(BaseModel):
    """The best output that starts with the given tokens."""

    run: RunName
    output: Output = Field(description="The best output that starts with the given tokens.")


class InsteadRequest(InspectionRequest):
    """A request to replace one token of the best output."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Das gefällt mir.", "step": 1, "piece": "He"}]}
    )

    step: int = Field(ge=1, description="Step of the token to replace, counted from 1.")
    piece: Text = Field(description="The replacement: a word or the text of a token.")


class InsteadResponse(BaseModel):
    """The best output before and after a token was replaced."""

    run: RunName
    step: int = Field(description="Step of the replaced token, counted from 1.")
    original: Output = Field(description="The best output.")
    changed: Output = Field(description="The output with the replacement.")
    alternatives: list[TokenChoice] = Field(description="The likeliest tokens at this step.")


class ExplainRequest(InspectionRequest):
    """A request to explain one decoder step."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Das gefällt mir.", "step": 1}]}
    )

    step: int = Field(ge=1, description="Step of the output token, counted from 1.")
    output: Text | None = Field(
        None, description="Explain this output. Default: the run's best one."
    )
    layer: int | None = Field(
        None, ge=1, description="Decoder layer to explain, counted from 1. Default: the last one."
    )
    head: int | None = Field(
        None, ge=1, description="Attention head to explain, counted from 1. Default: the first one."
    )


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
    """A request for a worked example of self-attention on small matrices."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"states": [[5, 1], [4, 3], [-2, 6]], "score": "sqrt", "selection": "softmax"}
            ]
        }
    )

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
    """All intermediate values of a decoder step."""

    run: str | None = Field(description="Name of the run; null for the worked example.")
    explanation: dict[str, Any] = Field(
        description="source, output, step, previous, answer, best, layer, head, and parts in the "
        "order of computation, each with chapter, name, formula, note, shape, labels and values."
    )
