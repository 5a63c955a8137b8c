"""[data]: the training, development and test data."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.corpora import (
    CorpusConfig,
    FramesConfig,
    GesturesConfig,
    HoldOutConfig,
    LanguagesConfig,
    LongTextConfig,
)
from seqloom.config.schema.section import Section

_AnyCorpus = CorpusConfig | LanguagesConfig
TrainSplitConfig = Annotated[_AnyCorpus, ByKind()]
SplitConfig = Annotated[_AnyCorpus | HoldOutConfig, ByKind()]


def _as_tuple(value: Any) -> Any:
    """Convert a single corpus to a tuple. Return any other value unchanged."""
    return (value,) if isinstance(value, (dict, Section)) else value


class FilterConfig(Section):
    """Filters of training pairs. Training reports how many pairs each filter drops."""

    max_source_tokens: int | None = Field(None, gt=0)
    """Drop pairs whose source has more tokens than this. Default: no limit."""
    max_target_tokens: int | None = Field(None, gt=0)
    """Drop pairs whose target has more tokens than this. Default: no limit."""
    max_ratio: float | None = Field(None, gt=1)
    """Maximum ratio of source and target length in tokens. Drop pairs in which the longer side has
    more than `max_ratio` times as many tokens as the shorter side. Default: no limit."""


class ExpectedFileConfig(Section):
    """A file of a data set."""

    file: str
    """Path of the file, relative to data.folder."""
    bytes: int = Field(gt=0)
    """Size of the file in bytes. A file of another size causes a warning."""


class ExpectedDataConfig(Section):
    """A public data set that does not come with seqloom: its origin and its files.

    Training and `seqloom doctor` compare the data folder with this list. Files that the data
    settings of the recipe do not use are not checked.
    """

    source: str
    """Name and origin of the data set."""
    licence: str
    """Licence of the data set."""
    files: tuple[ExpectedFileConfig, ...] = Field(min_length=1)
    """Files of the data set."""


class DataConfig(Section):
    """The data of a run. Each split is one corpus or a list of corpora."""

    folder: str = "."
    """Folder that relative paths in this section start from. If it is a relative path itself, it
    starts from the current directory. Default: "."."""
    train: Annotated[tuple[TrainSplitConfig, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
    """Corpora to train on."""
    dev: Annotated[tuple[SplitConfig, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = (
        HoldOutConfig(),
    )
    """Corpora that are scored during training, to choose the best weights and to stop early.
    Default: 2 % of the training pairs, which are held out."""
    test: Annotated[tuple[SplitConfig, ...], BeforeValidator(_as_tuple)] = ()
    """Corpora that `seqloom evaluate` scores. Default: []."""
    temperature: float = Field(1.0, ge=1)
    """Balance between training corpora or language pairs of different sizes: a corpus with n
    examples is sampled in proportion to n^(1/temperature). With 1, each example is used once per
    epoch. With 5, small corpora are repeated, and each epoch uses a different part of the large
    ones. Default: 1.0."""
    invalid_lines: Literal["error", "skip"] = "error"
    """What to do with lines that cannot be used, for example lines with too few columns or invalid
    UTF-8: "error" stops with a list of them, "skip" skips and counts them. Default: "error"."""
    expected: ExpectedDataConfig | None = None
    """Files of the public data set that the recipe needs, to check the data folder. Default: no
    check."""
    filter: FilterConfig = FilterConfig()
    """Filters of training pairs. Default: no filters."""
    merge_references: bool = False
    """In scoring, merge pairs with the same source into one example with several references.
    Default: false."""

    @property
    def has_frames(self) -> bool:
        """True if a training corpus contains sequences of frames (vectors) and their labels."""
        return any(isinstance(corpus, FramesConfig | GesturesConfig) for corpus in self.train)

    @property
    def is_long_text(self) -> bool:
        """True if a training corpus is one long text, not a list of separate examples."""
        return any(isinstance(corpus, LongTextConfig) for corpus in self.train)
