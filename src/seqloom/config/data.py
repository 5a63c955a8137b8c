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


def running_text_problems(data: DataConfig) -> list[str]:
    """Why this running text cannot be learned or scored; empty where there is none."""
    problems = []
    splits = {"train": data.train, "dev": data.dev, "test": data.test}
    running = data.is_running_text
    for name, corpora in splits.items():
        strangers = {one.kind for one in corpora if isinstance(one, RunningTextConfig) != running}
        if strangers == {"hold-out"}:
            problems.append(
                f"data.{name}: lines held out here and there would tear running text apart; hold out "
                f"its end: data.train.end = 0.9 and data.{name} = {{ kind = 'running-text', path = …, "
                "begin = 0.9 }"
            )
        elif strangers:
            problems.append(
                f"data.{name}: {', '.join(sorted(strangers))} cannot be mixed with data.train, of "
                "which one is running text and the other is not; use one kind for all splits"
            )
        shapes = {
            (one.length, one.context) for one in corpora if isinstance(one, RunningTextConfig)
        }
        if len(shapes) > 1:
            problems.append(
                f"data.{name}: its files are read as one text, so they have one length and one "
                "context; make them equal"
            )
    if running and data.filter != FilterConfig():
        problems.append(
            "data.filter: a line left out would tear running text apart; take data.filter away"
        )
    return problems
