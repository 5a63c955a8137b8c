"""[data]: where the pairs come from."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from seqloom.config.corpora import CorpusConfig, HoldOutConfig, RunningTextConfig
from seqloom.config.languages import LanguagesConfig
from seqloom.config.section import Section

_Anything = CorpusConfig | LanguagesConfig
TrainSplitConfig = Annotated[_Anything, Field(discriminator="kind")]
SplitConfig = Annotated[_Anything | HoldOutConfig, Field(discriminator="kind")]


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
