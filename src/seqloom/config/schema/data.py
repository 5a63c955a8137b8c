"""[data]: the training, development and test data."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.corpora import (
    HoldOutConfig,
    SplitDataConfig,
    TrainingDataConfig,
)
from seqloom.config.schema.section import Section

TrainSplitConfig = Annotated[TrainingDataConfig, ByKind()]
SplitConfig = Annotated[SplitDataConfig, ByKind()]


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
    """A file of the data set, and its expected size."""

    file: str
    """Path of the file, relative to data.folder."""
    bytes: int = Field(gt=0)
    """Size of the file in bytes. A file of another size causes a warning."""


class ExpectedDataConfig(Section):
    """A public data set that does not come with seqloom: its origin and its files.

    Training and `seqloom doctor` check that the data folder contains these files. They check only
    the files that the recipe uses.
    """

    source: str
    """Name and origin of the data set."""
    licence: str
    """Licence of the data set."""
    files: tuple[ExpectedFileConfig, ...] = Field(min_length=1)
    """Files of the data set."""


_TrainCorpora = Annotated[tuple[TrainSplitConfig, ...], BeforeValidator(_as_tuple)]
_Corpora = Annotated[tuple[SplitConfig, ...], BeforeValidator(_as_tuple)]


class ParentDataConfig(Section):
    """The data of the run that is fine-tuned. Fine-tuning copies these settings from that run."""

    folder: str = "."
    """Folder that relative paths in this section start from. Default: "."."""
    train: Annotated[_TrainCorpora, Field(min_length=1)]
    """Training corpora of the parent. They are read only for data.replay."""
    dev: _Corpora = ()
    """Dev corpora of the parent. They are the default of data.general; an empty list switches this
    off. Default: []."""
    test: _Corpora = ()
    """Test corpora of the parent. They say which training pairs are held out. Default: []."""
    invalid_lines: Literal["error", "skip"] = "error"
    """What to do with lines that cannot be used, as in data.invalid_lines. Default: "error"."""
    merge_references: bool = False
    """Merge pairs with the same source in scoring, as in data.merge_references. Default: false."""


class ReplayConfig(Section):
    """Replay: fine-tuning also trains on pairs from the training data of the parent, the run that
    it starts from, so that the model forgets less."""

    share: float = Field(0.2, gt=0, lt=1)
    """Share of the pairs of an epoch that come from the parent's training data. Each epoch uses
    other pairs of it. Default: 0.2."""


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
    general: _TrainCorpora = ()
    """Corpora that are also scored at every evaluation, for example to see what fine-tuning
    forgets. They never influence training. Default: the dev corpora of the parent in
    fine-tuning, otherwise []."""
    replay: ReplayConfig | None = None
    """Train also on the data of the parent. Default: off."""
    parent: ParentDataConfig | None = None
    """Data of the run that is fine-tuned. `seqloom train RECIPE --from RUN` copies it from that
    run. Default: none."""
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
    workers: int | None = Field(None, ge=1)
    """Number of processes that tokenise the data. The result does not depend on it. Default: one for
    each CPU core."""
    merge_references: bool = False
    """In scoring, merge pairs with the same source into one example with several references.
    Default: false."""

    @property
    def parent_data(self) -> "DataConfig | None":
        """The data of the parent, the run that is fine-tuned. None if there is no parent."""
        if self.parent is None:
            return None
        names = type(self.parent).model_fields
        return DataConfig.model_construct(**{name: getattr(self.parent, name) for name in names})

    @property
    def general_data(self) -> "DataConfig | None":
        """The data whose dev split is the general dev set: a second dev set, for information only.

        If `general` is not empty, its corpora are this dev split. Otherwise it is the dev split of
        the parent, which is the run that is fine-tuned. None if there is no such split.
        """
        if self.general:
            return self.model_copy(update={"dev": self.general, "general": (), "replay": None})
        return self.parent_data if self.parent is not None and self.parent.dev else None

    @property
    def modality(self) -> str:
        """What the sources of the training corpora are."""
        return self.train[0].modality

    @property
    def has_vectors(self) -> bool:
        """True if the sources are sequences of vectors, such as frames."""
        return any(corpus.has_vectors for corpus in self.train)

    @property
    def is_long_text(self) -> bool:
        """True if a training corpus is one long text, not a list of separate examples."""
        return any(corpus.is_long_text for corpus in self.train)
