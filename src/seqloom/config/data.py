"""[data]: where the pairs come from."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from seqloom.config.languages import LanguagesConfig, TaggedConfig
from seqloom.config.section import Section


def _as_names(value: Any) -> Any:
    """One name may be written without brackets."""
    return (value,) if isinstance(value, str) else value


def _as_pair(value: Any) -> Any:
    """A list of two, as TOML has it."""
    return tuple(value) if isinstance(value, list) else value


class ParallelConfig(TaggedConfig):
    """Two files, line by line: line n of one is the translation of line n of the other."""

    kind: Literal["parallel"] = "parallel"
    source: str
    target: str
    references: tuple[str, ...] = ()
    """Further files of correct targets, used when scoring."""


class TsvConfig(TaggedConfig):
    """One file of tab-separated columns."""

    kind: Literal["tsv"] = "tsv"
    path: str
    source_column: int = Field(0, ge=0)
    target_column: int = Field(1, ge=0)
    reference_columns: tuple[int, ...] = ()
    """Further columns of correct targets, used when scoring."""


class JsonlConfig(TaggedConfig):
    """One JSON object a line: {"src": …, "tgt": …} or {"translation": {"de": …, "en": …}}.

    A target may be a list: the first is learned, all of them count as correct when scoring.
    """

    kind: Literal["jsonl"] = "jsonl"
    path: str
    source: str = "src"
    """The key of the source, looked up in the object itself, then in its "translation"."""
    target: str = "tgt"


class LinesConfig(Section):
    """Plain text, a sentence a line: for models without a source."""

    kind: Literal["lines"] = "lines"
    path: str


class CaptionsConfig(Section):
    """Images with their captions, one or several for each.

    A line of `captions` is name<TAB>caption; a number behind the name, as in dog.jpg#3, is not
    part of it.
    """

    kind: Literal["captions"] = "captions"
    images: Annotated[tuple[str, ...], BeforeValidator(_as_names), Field(min_length=1)]
    """Folders, zip or tar files that hold them."""
    captions: str
    names: str | None = None
    """A file with the names of the images that are meant, a line each. Left out: all that have a
    caption."""


class SeriesConfig(Section):
    """A CSV file with a line of names on top and a row for each moment. Every stretch of rows long
    enough is an example."""

    kind: Literal["series"] = "series"
    path: str
    columns: Annotated[tuple[str, ...], BeforeValidator(_as_names), Field(min_length=1)]
    """What is forecast."""
    context: Annotated[tuple[str, ...], BeforeValidator(_as_names)] = ()
    """What is known beforehand also of the time to come, told to the decoder at every step."""
    rows: Annotated[tuple[int, int] | None, BeforeValidator(_as_pair)] = None
    """[first, last): what is forecast lies within, counted from 0 without the line of names; what
    is observed may begin earlier. Left out: everywhere."""
    stride: int = Field(1, ge=1)
    """Rows from one example to the next."""


class TracksConfig(Section):
    """Recordings of people on their way: frame, walker, x and y in each line."""

    kind: Literal["tracks"] = "tracks"
    recordings: Annotated[tuple[str, ...], BeforeValidator(_as_names)] = ()
    """Their files."""
    scene: str | None = None
    """Instead of recordings: leave this scene out, as `splits` says. Test is the scene itself."""
    splits: str = "splits.json"
    companions: int = Field(2, ge=1)
    """A stretch of frames counts if so many walkers are there all the time."""

    @model_validator(mode="after")
    def _something_is_read(self) -> Self:
        if bool(self.recordings) == (self.scene is not None):
            raise ValueError("give either recordings or a scene")
        return self


Language = Literal["de", "en", "fr"]
"""Of the bundled sentences."""


class RunningTextConfig(Section):
    """One long text, for models without a source: a file is one sequence of tokens, and the end of
    each line is one of them. Models see it through windows."""

    kind: Literal["running-text"] = "running-text"
    path: str
    begin: float = Field(0.0, ge=0, lt=1)
    """Leave out what comes before: a share of the file's characters, up to the next whole line."""
    end: float = Field(1.0, gt=0, le=1)
    """Leave out what comes behind: train up to 0.9 and dev from 0.9 on share no line."""
    length: int = Field(256, ge=1)
    """Tokens of a window."""
    context: int | None = Field(None, ge=0)
    """So many tokens at the beginning of a window are only read, because the window before it has
    answered them. Left out: none in training, half a window in scoring."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.begin >= self.end:
            raise ValueError(f"begin = {self.begin} leaves nothing before end = {self.end}")
        if self.context is not None and self.context >= self.length:
            raise ValueError(
                f"context = {self.context} leaves nothing to answer in a window of length "
                f"{self.length}; make context smaller or length larger"
            )
        return self


class BundledConfig(TaggedConfig):
    """Short everyday sentences from Tatoeba that come with seqloom (CC BY 2.0)."""

    kind: Literal["bundled"] = "bundled"
    source: Language
    target: Language

    @model_validator(mode="after")
    def _one_side_is_english(self) -> Self:
        if (self.source == "en") == (self.target == "en"):
            raise ValueError("the bundled pairs are de-en and en-fr: exactly one side must be 'en'")
        return self


class BundledLabelsConfig(Section):
    """Labels that sentences from Tatoeba carry in themselves, each sentence once (CC BY 2.0).

    language: a sentence to the language it is in. capitals: a sentence in lower case to a label for
    each of its characters, U where there was a capital letter and l elsewhere.
    """

    kind: Literal["bundled-labels"] = "bundled-labels"
    labels: Literal["language", "capitals"]
    languages: Annotated[tuple[Language, ...], Field(min_length=1)] = ("de", "en", "fr")
    """The languages whose sentences are taken."""

    @model_validator(mode="after")
    def _something_to_learn(self) -> Self:
        if self.labels == "language" and len(set(self.languages)) < 2:
            raise ValueError(
                "labels = 'language' needs two languages or more to tell apart; name them in "
                "languages"
            )
        return self


class SyntheticConfig(Section):
    """Pairs with a known answer, generated as they are read.

    copy, reverse, sort: strings of letters. addition: "12+7" to "19". case: "<U> I am" to "I AM".
    The three splits of a recipe never share a source.
    """

    kind: Literal["synthetic"] = "synthetic"
    task: Literal["copy", "reverse", "sort", "addition", "case"]
    examples: int = Field(gt=0)
    min_length: int = Field(1, ge=1)
    max_length: int = Field(10, ge=1)
    """Letters (copy, reverse, sort), digits (addition) or characters (case)."""
    symbols: int = Field(26, ge=2, le=26)
    """How many different letters there are (copy, reverse, sort)."""
    seed: int = Field(0, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _lengths_in_order(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}")
        return self


class HoldOutConfig(Section):
    """Taken out of the training pairs: a fixed share, chosen by the source text itself, so that
    all translations of one sentence stay on one side."""

    kind: Literal["hold-out"] = "hold-out"
    fraction: float = Field(0.02, gt=0, lt=0.5)


CorpusConfig = (
    ParallelConfig
    | TsvConfig
    | JsonlConfig
    | LinesConfig
    | CaptionsConfig
    | SeriesConfig
    | TracksConfig
    | RunningTextConfig
    | BundledConfig
    | BundledLabelsConfig
    | SyntheticConfig
)
"""One corpus: what is read from one place."""
HeldOutConfig = CorpusConfig | HoldOutConfig
"""One corpus, or what is held out of others."""
TrainSplitConfig = Annotated[
    ParallelConfig
    | LanguagesConfig
    | TsvConfig
    | JsonlConfig
    | LinesConfig
    | CaptionsConfig
    | SeriesConfig
    | TracksConfig
    | BundledConfig
    | BundledLabelsConfig
    | SyntheticConfig,
    Field(discriminator="kind"),
]
SplitConfig = Annotated[
    ParallelConfig
    | LanguagesConfig
    | TsvConfig
    | JsonlConfig
    | LinesConfig
    | CaptionsConfig
    | SeriesConfig
    | TracksConfig
    | RunningTextConfig
    | BundledConfig
    | BundledLabelsConfig
    | SyntheticConfig
    | HoldOutConfig,
    Field(discriminator="kind"),
]


def _as_tuple(value: Any) -> Any:
    """One corpus may be written as a table; several as a list of tables."""
    return (value,) if isinstance(value, (dict, Section)) else value


class FilterConfig(Section):
    """Which training pairs are left out. All off by default; whatever they drop is reported."""

    max_source_tokens: int | None = Field(None, gt=0)
    max_target_tokens: int | None = Field(None, gt=0)
    max_ratio: float | None = Field(None, gt=1)
    """Drop a pair if one side has more than this many times the tokens of the other."""


class DataConfig(Section):
    folder: str = "."
    """Relative paths below start here. Itself relative to the current directory."""
    train: Annotated[tuple[TrainSplitConfig, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
    dev: Annotated[tuple[SplitConfig, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = (
        HoldOutConfig(),
    )
    """Scored during training, to stop and to choose the best weights."""
    test: Annotated[tuple[SplitConfig, ...], BeforeValidator(_as_tuple)] = ()
    """Scored by `seqloom evaluate`."""
    temperature: float = Field(1.0, ge=1)
    """How evenly the pairs of languages, or other parts of the training data, are drawn: a part of
    n examples in proportion to n^(1/temperature). 1: each example once an epoch; 5: small parts
    are repeated, and of large ones each epoch sees others."""
    filter: FilterConfig = FilterConfig()
    merge_references: bool = False
    """When scoring, the translations of one source become several references of one sentence."""

    @property
    def is_running_text(self) -> bool:
        return any(isinstance(corpus, RunningTextConfig) for corpus in self.train)
