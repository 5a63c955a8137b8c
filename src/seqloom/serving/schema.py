"""What is asked and answered, typed. FastAPI checks requests by it and writes /openapi.json."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from seqloom.serving.limits import Limits
from seqloom.serving.served import TaskKind


def _sound(text: str) -> str:
    """JSON can spell half of a character, which no text is made of."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("holds half of a surrogate pair, so it is no text; send valid Unicode")
    return text


Text = Annotated[str, AfterValidator(_sound)]
Number = float | None
"""null: minus infinity, the logarithm of what cannot be."""


class Asked(BaseModel):
    """A request: nothing unknown in it, and nothing of another type taken for what was meant."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AskedOfRun(Asked):
    run: Text | None = Field(None, description="Its name. Left out: the only one that can do it.")


class TranslateRequest(AskedOfRun):
    texts: list[Text] = Field(min_length=1, description="One answer each; blank in is blank out.")
    source: Text | None = Field(None, description="The language of the texts, as 'de'.")
    target: Text | None = Field(None, description="The language to translate into, as 'en'.")
    beam: int | None = Field(None, ge=1, description="Left out: as the run's recipe says.")
    n_best: int = Field(1, ge=1, description="Outputs for each part of a text, the best first.")
    length_exponent: float | None = Field(
        None, ge=0, le=10, description="Scores are log p / length^exponent."
    )
    prefix: Text | None = Field(None, description="How the output of the only text must begin.")
    split: bool = Field(True, description="Cut texts into sentences and join what comes out.")
    alignment: bool = Field(False, description="Which word comes from which.")
    attention: bool = Field(False, description="Where each piece looked.")
    heads: bool = Field(False, description="Where each layer and head looked.")


class Output(BaseModel):
    """One output of a model. Scores are log p / length^exponent; higher is better."""

    text: str
    score: Number
    pieces: list[str]
    tokens: list[int] = Field(description="The number of each piece in the vocabulary.")
    source_pieces: list[str]
    log_probabilities: list[Number]
    finished: bool = Field(description="False: stopped at the length limit.")
    alignment: list[tuple[int, int]] | None = Field(
        None, description="(source word, output word), counted from 0."
    )
    attention: list[list[float]] | None = Field(
        None, description="A row for each piece: how much it looked at each source piece."
    )
    heads: list[list[list[list[float]]]] | None = Field(
        None, description="The same by piece, layer and head."
    )


class TranslatedPart(BaseModel):
    """A sentence, or what is read at once."""

    before: str = Field(description="White space that stands before it.")
    source: str
    outputs: list[Output]


class Translated(BaseModel):
    text: str = Field(description="All parts, joined with the white space that was between them.")
    alternatives: list[str] = Field(
        description="With n_best: the next best of every part, joined in the same way."
    )
    parts: list[TranslatedPart]


class TranslateAnswer(BaseModel):
    run: str
    source: str | None
    target: str | None
    beam: int | None = Field(description="The width that was used; null for other searches.")
    translations: list[Translated]


class CompleteRequest(AskedOfRun):
    prompts: list[Text] = Field([""], min_length=1, description="A blank one lets the model begin.")
    samples: int = Field(1, ge=1, description="Texts for each prompt.")
    temperature: float = Field(
        1.0, ge=0, le=100, description="Below 1 sharpens; 0 takes the likeliest token."
    )
    top_k: int = Field(0, ge=0, description="Draw from the k likeliest tokens; 0: from all.")
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int | None = Field(None, ge=0, lt=2**53, description="Left out: drawn, and told.")
    max_length: int | None = Field(None, ge=1, description="Tokens in all, the prompt included.")
    one_line: bool = Field(False, description="End at the end of a line.")


class Completed(BaseModel):
    prompt: str
    unknown: bool = Field(description="Is something in the prompt that the model never saw?")
    outputs: list[Output]


class CompleteAnswer(BaseModel):
    run: str
    seed: int | None
    completions: list[Completed]


class LabelRequest(AskedOfRun):
    texts: list[Text] = Field(min_length=1)
    every: bool = Field(False, description="All labels of each text, the likeliest first.")


class Label(BaseModel):
    label: str
    probability: float


class LabelAnswer(BaseModel):
    run: str
    labels: list[list[Label]]


class ScoreRequest(AskedOfRun):
    sources: list[Text] | None = Field(None, description="Left out for a language model.")
    targets: list[Text] = Field(min_length=1)
    source: Text | None = None
    target: Text | None = Field(None, description="The language of the targets.")
    attention: bool = False


class ScoreAnswer(BaseModel):
    run: str
    scores: list[Output]


class Window(Asked):
    observed: list[list[float]] = Field(
        min_length=1, description="A row for each moment: the values, and beside them the context."
    )
    context: list[list[float]] | None = Field(
        None, description="What is known of each moment to come."
    )


class ForecastRequest(AskedOfRun):
    windows: list[Window] = Field(min_length=1)


class ForecastAnswer(BaseModel):
    run: str
    columns: list[str]
    forecasts: list[list[list[float]]] = Field(description="Window by window, row by row.")


class CaptionAnswer(BaseModel):
    run: str
    outputs: list[Output]
    grid: tuple[int, int] | None = Field(
        description="Rows and columns of the cells that attention is over."
    )


class LanguagePair(BaseModel):
    source: str
    target: str


class RunAnswer(BaseModel):
    """A run that is served."""

    name: str
    kind: TaskKind
    route: str = Field(description="Where to ask it.")
    languages: list[LanguagePair]
    targets: list[str] = Field(description="What to choose from by `target`, if anything.")
    parameters: int
    memory_bytes: int
    engine: str
    attention: bool = Field(description="Does its decoder look back at what it reads?")
    layers: int
    heads: int
    decoding: str
    beam: int | None
    observe: int | None = Field(None, description="Rows that a forecast reads.")
    predict: int | None = Field(None, description="Rows that it puts out.")
    columns: list[str] = []
    context: list[str] = []


class RunsAnswer(BaseModel):
    version: str
    limits: Limits
    runs: list[RunAnswer]


class HealthAnswer(BaseModel):
    status: Literal["starting", "ok", "stopping"]
