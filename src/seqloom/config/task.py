"""[task]: what the job means."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from seqloom.config.kinds import ScoreName, SourceScoreName
from seqloom.config.section import Section

Scores = Annotated[tuple[ScoreName | SourceScoreName, ...], Field(min_length=1)]


class TranslationConfig(Section):
    """A source sequence of tokens to a target sequence of tokens."""

    reads_text: ClassVar[bool] = True

    kind: Literal["translation"] = "translation"
    scores: Scores = ("bleu", "chrf2", "ter", "exact-match", "token-accuracy")
    """How outputs are judged, the most telling score first. For pronunciations:
    ["word-error-rate", "phoneme-error-rate"]."""
    tag_side: Literal["source", "target"] = "source"
    """Where the tag of a corpus goes: before the source, or at the head of the target, where every
    output is made to begin with it."""


class LabelsConfig(Section):
    """A source sequence of tokens to one label, or to a label for each of its positions."""

    reads_text: ClassVar[bool] = True

    kind: Literal["labels"] = "labels"
    scores: Scores = ("accuracy", "macro-f1", "exact-match")
    """How outputs are judged, the most telling score first."""


class LanguageModelConfig(Section):
    """Nothing to a sequence of tokens: make sentences up, or finish them."""

    reads_text: ClassVar[bool] = False

    kind: Literal["language-model"] = "language-model"


class CaptioningConfig(Section):
    """An image to a sequence of tokens that says what is on it."""

    reads_text: ClassVar[bool] = False
    kind: Literal["captioning"] = "captioning"
    size: int = Field(80, ge=8, le=1024)
    """Pixels along one side of the square that is looked at."""
    margin: int = Field(8, ge=0)
    """Images are kept this much larger: in training the square moves about in them."""


class ForecastConfig(Section):
    """Real-valued vectors to the vectors that follow them, with a squared loss."""

    reads_text: ClassVar[bool] = False
    kind: Literal["forecast"] = "forecast"
    observe: int = Field(ge=1)
    """Rows that are read."""
    predict: int = Field(ge=1)
    """Rows that are forecast."""
    form: Literal["values", "relative", "steps"] = "relative"
    """What the network sees of every column: the values; their distance from the last observed
    one; or the step from each row to the next. All are scaled to mean 0 and deviation 1 by
    the training split."""
    rollout: bool = False
    """Free running in training: the decoder is fed its own outputs, and gradients run through
    them. Otherwise it is fed the truth (teacher forcing)."""
    turn: bool = False
    """Turn and mirror the plane at random in training: for paths, which have no favourite
    direction."""


TokenTaskConfig = TranslationConfig | LabelsConfig | LanguageModelConfig | CaptioningConfig
TaskConfig = Annotated[TokenTaskConfig | ForecastConfig, Field(discriminator="kind")]
