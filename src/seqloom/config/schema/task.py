"""[task]: what the model learns to do."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from seqloom.config.extensions.unions import ByName
from seqloom.config.schema.names import ExtensionName, ScoreName
from seqloom.config.schema.section import PartConfig

MetricName = Annotated[ScoreName | ExtensionName, ByName()]
Scores = Annotated[tuple[MetricName, ...], Field(min_length=1)]


class TaskConfig(PartConfig):
    """Base class of all tasks. `builds` names the task, which implements `tasks.task.Task`."""

    extension_point: ClassVar[str] = "task"
    modalities: ClassVar[tuple[str, ...]] = ("text",)
    """What the corpora can hold: the names of modalities, as in `SplitDataConfig.modality`."""
    has_source: ClassVar[bool] = True
    """False if the model reads no source, even if the corpora have one."""
    action: ClassVar[str]
    """What a run of this task does, for messages: "translates"."""
    route: ClassVar[str] = ""
    """The path under which the server offers the task. Empty if it does not."""
    command: ClassVar[str] = ""
    """A command that predicts with a run, shown after training. {program} is the program, {run} the
    run folder, {to} the option that selects a target language, if the run needs it."""

    @property
    def selected_scores(self) -> Sequence[str] | None:
        """The scores that the recipe selects; None if they cannot be selected."""
        return None


class ScoredTaskConfig(TaskConfig):
    """Base class of tasks whose scores the recipe selects."""

    scores: Scores

    @property
    def selected_scores(self) -> Sequence[str]:
        return self.scores


class TranslationConfig(ScoredTaskConfig):
    """Predicts a target sequence of tokens from a source sequence of tokens."""

    builds: ClassVar[str] = "seqloom.tasks.translation:Translation"
    action: ClassVar[str] = "translates"
    route: ClassVar[str] = "/api/translate"
    command: ClassVar[str] = "echo '…' | {program} translate {run}{to}"
    kind: Literal["translation"] = "translation"
    scores: Scores = ("bleu", "chrf2", "ter", "exact-match", "token-accuracy")
    """Scores of outputs, the most important one first. For pronunciation use
    ["word-error-rate", "phoneme-error-rate"]. A metric of your own is written "module:name".
    Default: ["bleu", "chrf2", "ter", "exact-match",
    "token-accuracy"]."""
    tag_side: Literal["source", "target"] = "source"
    """Where the tag of a corpus goes: before the source, or at the start of the target. With
    "target", decoding forces every output to start with the tag. Default: "source"."""


class LabelsConfig(ScoredTaskConfig):
    """Predicts one label for a source sequence of tokens, or one label for each of its positions."""

    builds: ClassVar[str] = "seqloom.tasks.labelling:Labelling"
    action: ClassVar[str] = "labels texts"
    route: ClassVar[str] = "/api/label"
    command: ClassVar[str] = "{program} label {run} '…'"
    modalities: ClassVar[tuple[str, ...]] = ("text", "frames")
    kind: Literal["labels"] = "labels"
    scores: Scores = ("accuracy", "macro-f1", "exact-match")
    """Scores of outputs, the most important one first. Default: ["accuracy", "macro-f1",
    "exact-match"]."""


class LanguageModelConfig(TaskConfig):
    """A language model: generates or completes a sequence of tokens, without a source."""

    builds: ClassVar[str] = "seqloom.tasks.language_model:LanguageModel"
    action: ClassVar[str] = "completes texts"
    route: ClassVar[str] = "/api/complete"
    command: ClassVar[str] = "{program} complete {run} --samples 5"
    modalities: ClassVar[tuple[str, ...]] = ("none", "text")  # of pairs, only the targets
    has_source: ClassVar[bool] = False
    kind: Literal["language-model"] = "language-model"


class CaptioningConfig(TaskConfig):
    """Predicts a sequence of tokens that describes an image."""

    builds: ClassVar[str] = "seqloom.tasks.captioning:Captioning"
    action: ClassVar[str] = "captions images"
    route: ClassVar[str] = "/api/caption"
    command: ClassVar[str] = "{program} caption {run} IMAGE"
    modalities: ClassVar[tuple[str, ...]] = ("images",)
    kind: Literal["captioning"] = "captioning"
    size: int = Field(80, ge=8, le=1024)
    """Side length, in pixels, of the square image that the encoder reads. Default: 80."""
    margin: int = Field(8, ge=0)
    """Number of pixels by which stored images are larger than `size`. Training crops a random square
    with sides of `size` pixels out of each image. Default: 8."""


class ForecastConfig(TaskConfig):
    """Predicts the real-valued vectors that follow a sequence of vectors. The loss is squared error."""

    builds: ClassVar[str] = "seqloom.tasks.forecast:Forecast"
    action: ClassVar[str] = "forecasts numbers"
    route: ClassVar[str] = "/api/forecast"
    command: ClassVar[str] = "{program} forecast {run} FILE"
    modalities: ClassVar[tuple[str, ...]] = ("series",)
    kind: Literal["forecast"] = "forecast"
    observe: int = Field(ge=1)
    """Number of rows that the model reads."""
    predict: int = Field(ge=1)
    """Number of rows that the model forecasts."""
    representation: Literal["values", "relative", "differences"] = "relative"
    """Representation of each column: "values" uses the values themselves, "relative" their difference
    from the last observed value, "differences" the difference between each row and the previous
    one. The results are scaled to mean 0 and standard deviation 1 on the training split. Default:
    "relative"."""
    context_representation: Literal["values", "relative", "differences"] | None = None
    """Representation of the context columns. Use "values" if the context is a sensor reading such as a
    speed, whose size matters. Default: that of `representation`."""
    use_context: bool = True
    """Read the context columns. False trains without them, to measure what they contribute.
    Default: true."""
    rollout: bool = False
    """Short for training.decoder_input = {kind = "free-running"}: the decoder reads its own
    predictions in training. Default: false."""
    random_rotation: bool = False
    """Rotate and mirror the coordinates of each training example at random. For paths in a plane,
    where no direction is special; needs two columns. Default: false."""
