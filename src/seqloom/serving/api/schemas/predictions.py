"""Requests and responses of the prediction routes. FastAPI derives /openapi.json from them."""

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from seqloom.core.finite_json import to_json_number
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.serving.api.languages.pairs import LanguagePair
from seqloom.serving.api.schemas.option_fields import (
    Control,
    OptionsRequest,
    RunRequest,
    StrictRequest,
    Text,
    with_option_fields,
)
from seqloom.serving.server.limits import Limits

RunName = Annotated[str, Field(description="Name of the run that computed the response.")]
JsonNumber = float | None
"""A number. Null stands for minus infinity, the logarithm of probability 0, because JSON cannot
encode infinities."""


class TextResponse(BaseModel):
    """Base class of responses to requests with source texts. Contains warnings about the texts."""

    warnings: list[str] = Field(
        [],
        description="Problems with the texts, for example that a text has no tag although the run "
        "has tags. Empty if there are none.",
    )


@with_option_fields("translate")
class TranslateRequest(OptionsRequest):
    """Texts to translate."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": ["Das gefällt mir."]}]})

    texts: list[Text] = Field(
        min_length=1, description="Texts to translate. Blank texts stay blank."
    )
    source: Text | None = Field(None, description="Source language, such as 'de'.")
    target: Text | None = Field(None, description="Target language, such as 'en'.")
    prefix: Text | None = Field(
        None,
        description="Start of the output. Needs a single text, which is then not split.",
    )
    alignment: bool = Field(False, description="Return word alignments.")

    def search_options(self) -> PredictionOptions:
        """The options of the search. It stores attention weights if the response needs them."""
        options = self.options
        return replace(
            options,
            attention=options.attention or options.heads or self.alignment,
            prefixes=None if self.prefix is None else [self.prefix],
        )


class Output(BaseModel):
    """One model output.

    The score is log p / length^length_penalty, where p is the probability of the output. A higher
    score is better.
    """

    text: str = Field(description="The output as text.")
    score: JsonNumber = Field(description="Length-normalised log-probability.")
    pieces: list[str] = Field(description="Output tokens as text.")
    tokens: list[int] = Field(description="Output tokens as vocabulary indices.")
    source_pieces: list[str] = Field(description="Source tokens as text.")
    log_probabilities: list[JsonNumber] = Field(description="Log-probability of each token.")
    finished: bool = Field(description="False if the output was cut at the length limit.")
    copied: bool = Field(
        False,
        description="True if the source contains nothing to translate and was copied.",
    )
    copied_parts: list[str] = Field(
        [],
        description="Parts of the text that were copied from the source, such as URLs, in order.",
    )
    warnings: list[str] = Field([], description="Problems with the source or the output.")
    alignment: list[tuple[int, int]] | None = Field(
        None, description="Linked words as pairs (source word, output word), counted from 0."
    )
    attention: list[list[float]] | None = Field(
        None, description="For each output token, its weight on each source token."
    )
    heads: list[list[list[list[float]]]] | None = Field(
        None, description="Attention weights by output token, layer, head and source token."
    )

    @classmethod
    def from_prediction(
        cls,
        prediction: Prediction,
        *,
        alignment: bool = False,
        attention: bool = False,
        heads: bool = False,
    ) -> Self:
        """Create an output from a prediction.

        The fields alignment, attention and heads are None, unless the argument of the same name is
        True.
        """
        mean_weights = prediction.attention if attention else None
        head_weights = prediction.heads if heads else None
        return cls(
            text=prediction.text,
            score=to_json_number(prediction.score),
            pieces=list(prediction.pieces),
            tokens=list(prediction.tokens),
            source_pieces=list(prediction.source_pieces),
            log_probabilities=[to_json_number(value) for value in prediction.log_probabilities],
            finished=prediction.finished,
            copied=prediction.copied,
            copied_parts=list(prediction.copied_parts),
            warnings=list(prediction.warnings),
            alignment=list(prediction.alignment) if alignment else None,
            attention=None if mean_weights is None else mean_weights.tolist(),
            heads=None if head_weights is None else head_weights.tolist(),
        )


_UNKNOWN = "Characters or words of the source that the vocabulary does not contain, in order."


class TranslatedSegment(BaseModel):
    """A sentence, or a whole text that is not split into sentences, with its translations."""

    before: str = Field(description="White space before the sentence.")
    source: str = Field(description="The sentence.")
    outputs: list[Output] = Field(description="Its translations, best first.")
    unknown: list[str] = Field(description=_UNKNOWN)


class TranslatedText(BaseModel):
    """The translation of one text."""

    text: str = Field(
        description="Translations of all sentences, joined with the white space of the source."
    )
    alternatives: list[str] = Field(
        description="With n_best > 1: the next best translations, joined in the same way."
    )
    parts: list[TranslatedSegment] = Field(description="The sentences of the text, in order.")
    unknown: list[str] = Field(description=_UNKNOWN)
    warnings: list[str] = Field(description="Problems with the text or its translation.")


class TranslateResponse(TextResponse):
    """Translations of all texts of a request."""

    run: RunName
    source: str | None = Field(description="Source language; null if it is unknown.")
    target: str | None = Field(description="Target language; null if it is unknown.")
    beam: int | None = Field(
        description="Beam width, 1 for greedy search; null for other kinds of search."
    )
    translations: list[TranslatedText] = Field(description="One translation per text, in order.")


@with_option_fields("complete")
class CompleteRequest(OptionsRequest):
    """Prompts that a language model continues."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"prompts": ["I think that"], "max_length": 20, "seed": 1}]}
    )

    prompts: list[Text] = Field(
        [""], min_length=1, description="Texts to continue. A prompt can be empty."
    )


class Completion(BaseModel):
    """The continuations of one prompt."""

    prompt: str = Field(description="The prompt.")
    unknown: bool = Field(description="True if the prompt contains tokens unknown to the model.")
    outputs: list[Output] = Field(description="The prompt with its continuations, one per sample.")


class CompleteResponse(BaseModel):
    """Continuations of all prompts of a request."""

    run: RunName
    seed: int | None = Field(
        description="Seed of the sampling: the same seed gives the same outputs. Null without sampling."
    )
    completions: list[Completion] = Field(description="One item per prompt, in order.")


class LabelRequest(RunRequest):
    """Texts to label."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"texts": ["Das gefällt mir."], "every": True}]}
    )

    texts: list[Text] = Field(min_length=1, description="Texts to label. Blank texts get no label.")
    every: bool = Field(False, description="Return all labels of each text, likeliest first.")


class LabelProbability(BaseModel):
    """A label with its probability."""

    label: str = Field(
        description="The label. If the run labels tokens: the labels of all tokens, separated by spaces."
    )
    probability: float = Field(description="Its probability, from 0 to 1.")


class LabelResponse(TextResponse):
    """Labels of all texts of a request."""

    run: RunName
    labels: list[list[LabelProbability]] = Field(
        description="The labels of each text, likeliest first; empty for a blank text."
    )


class ScoreRequest(RunRequest):
    """Target texts whose log-probabilities are to be computed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"sources": ["Das gefällt mir."], "targets": ["I like it."]}]
        }
    )

    sources: list[Text] | None = Field(
        None, description="Source texts, one per target. Omit them for a language model."
    )
    targets: list[Text] = Field(min_length=1, description="Outputs to score.")
    source: Text | None = Field(None, description="Language of the sources.")
    target: Text | None = Field(None, description="Language of the targets.")
    attention: bool = Field(False, description="Return attention weights and word alignments.")


class ScoreResponse(TextResponse):
    """Log-probabilities of all targets of a request."""

    run: RunName
    scores: list[Output] = Field(description="One item per target, with its log-probabilities.")


class ForecastWindow(StrictRequest):
    """The observed rows of a time series to continue."""

    observed: list[list[float]] = Field(
        min_length=1, description="One row per time step: the values, then the context."
    )
    context: list[list[float]] | None = Field(
        None, description="Known context of the time steps to predict, one row each."
    )


FORECAST_EXAMPLE: JsonDict = {
    "windows": [
        {
            "observed": [
                [0.1, 0.9],
                [0.9, 0.7],
                [1.3, 0.2],
                [1.1, -0.5],
                [0.5, -0.9],
                [-0.3, -0.9],
            ],
            "context": [[-0.5], [0.2], [0.7]],
        }
    ]
}
"""Six rows of a value and its context, and the context of the next three rows."""


class ForecastRequest(RunRequest):
    """Windows of time series to continue. /api/forecast/example returns one of the right size."""

    model_config = ConfigDict(json_schema_extra={"examples": [FORECAST_EXAMPLE]})

    windows: list[ForecastWindow] = Field(min_length=1, description="Windows to continue.")


class ForecastResponse(BaseModel):
    """The rows that are predicted for each window of a request."""

    run: RunName
    columns: list[str] = Field(description="Names of the predicted columns.")
    forecasts: list[list[list[float]]] = Field(description="Values by window, row and column.")


class ForecastExample(BaseModel):
    """A synthetic input window of the size that a run expects."""

    run: RunName
    observed: list[list[float]] = Field(
        description="One row per time step: the values, then the context."
    )
    context: list[list[float]] = Field(
        description="Context of the time steps to predict; empty rows if the run has none."
    )


class CaptionResponse(BaseModel):
    """Captions of an image."""

    run: RunName
    outputs: list[Output] = Field(description="The captions, best first.")
    grid: tuple[int, int] | None = Field(
        description="Rows and columns of the image cells to which the attention weights refer."
    )


class RunDescription(BaseModel):
    """A loaded run."""

    name: str = Field(description="Name of the run, for the field `run` of requests.")
    kind: str = Field(description="Task of the run.")
    route: str = Field(description="Route for predictions.")
    languages: list[LanguagePair] = Field(
        description="Language pairs of a translation run; empty if they are unknown."
    )
    targets: list[str] = Field(
        description="Target languages of the run; empty if they are unknown."
    )
    parameters: int = Field(description="Number of weights.")
    memory_bytes: int = Field(description="Size of the weights in bytes.")
    engine: str = Field(description="Engine that decodes: torch, compiled or ctranslate2.")
    attention: bool = Field(description="True if the decoder attends to the source.")
    layers: int = Field(description="Number of decoder layers with attention to the source.")
    heads: int = Field(description="Number of attention heads per layer.")
    decoding: str = Field(description="Kind of search that the run uses by default.")
    beam: int | None = Field(description="Default beam width; null for other kinds of search.")
    split_sentences: bool = Field(
        False, description="True if the run splits texts into sentences by default."
    )
    observe: int | None = Field(None, description="Number of input rows of a forecast.")
    predict: int | None = Field(None, description="Number of output rows of a forecast.")
    columns: list[str] = Field([], description="Names of the columns that a forecast predicts.")
    context: list[str] = Field([], description="Names of the context columns of a forecast.")


class RunsResponse(BaseModel):
    """The loaded runs, the request limits and the version of the server."""

    version: str = Field(description="Version of seqloom.")
    limits: Limits = Field(description="Request limits of the server.")
    runs: list[RunDescription] = Field(description="All loaded runs.")
    controls: list[Control] = Field(description="Controls of the web page for options.")


class HealthResponse(BaseModel):
    """State of the server."""

    status: Literal["starting", "ok", "stopping"] = Field(
        description="starting: the runs are being loaded. stopping: new requests are rejected."
    )
