"""How to decode, and by which engine: what a recipe says, changed for the occasion."""

from typing import Any, get_args

from seqloom.config.decoding import (
    BeamConfig,
    DecodingConfig,
    GreedyConfig,
    MinimumBayesRiskConfig,
    RulesConfig,
    SampleConfig,
)
from seqloom.config.engine import EngineConfig
from seqloom.config.kinds import EngineKind
from seqloom.core.errors import ConfigError


def _kept(decoding: DecodingConfig) -> dict[str, Any]:
    """The rules that every search obeys, and how lengths count."""
    return decoding.model_dump(include={*RulesConfig.model_fields, "length_exponent"})


def greedily(decoding: DecodingConfig) -> GreedyConfig:
    """The same rules, with the quickest search."""
    return GreedyConfig(**_kept(decoding))


def drawn(decoding: DecodingConfig, samples: int) -> SampleConfig:
    """As a recipe draws, or else with its rules; as many samples."""
    if isinstance(decoding, SampleConfig):
        return decoding.model_copy(update={"samples": max(samples, 1)})
    return SampleConfig(samples=max(samples, 1), **_kept(decoding))


def chosen_decoding(
    recipe: DecodingConfig, beam: int | None, decoding: DecodingConfig | None
) -> DecodingConfig:
    """What was asked for, else what the recipe says."""
    chosen = recipe if decoding is None else decoding
    if not isinstance(chosen, RulesConfig):
        raise ConfigError(
            "decoding: give one of seqloom.config.decoding, as BeamConfig(width=5) or "
            f"GreedyConfig(), not {decoding!r:.60}"
        )
    return chosen if beam is None else widened(chosen, beam)


def widened(decoding: DecodingConfig, beam: int) -> BeamConfig:
    """The same rules, with a beam of this width."""
    if not isinstance(beam, int) or beam < 1:
        raise ConfigError(f"a beam must be 1 or more wide, a whole number, not {beam!r}")
    if isinstance(decoding, BeamConfig):
        return decoding.model_copy(update={"width": beam})
    return BeamConfig(width=beam, **_kept(decoding))


def chosen_engine(settings: EngineConfig, asked: str | None) -> EngineConfig:
    """The engine that was asked for, if one was; what was not said stays."""
    if asked is None:
        return settings
    if asked not in get_args(EngineKind):
        raise ConfigError(
            f"there is no engine '{asked}'; there are {', '.join(get_args(EngineKind))}"
        )
    return settings.model_copy(update={"kind": asked})


def refuse_too_many(decoding: DecodingConfig, n_best: int) -> None:
    """A search finds as many outputs as it is wide, and no more."""
    if n_best < 1:
        raise ConfigError(f"at least one output a text is needed, not {n_best}")
    if isinstance(decoding, BeamConfig) and decoding.width < n_best:
        raise ConfigError(
            f"{n_best} outputs a text need a beam of {n_best} or more, not {decoding.width}; "
            f"widen it with --beam {n_best} (beam={n_best} in Python)"
        )
    if isinstance(decoding, SampleConfig) and decoding.samples < n_best:
        raise ConfigError(
            f"{n_best} outputs a text need as many samples, not {decoding.samples}; "
            f"set decoding.samples={n_best}"
        )
    if isinstance(decoding, MinimumBayesRiskConfig) and decoding.samples + decoding.beam < n_best:
        raise ConfigError(
            f"{n_best} outputs a text need as many candidates, not "
            f"{decoding.samples + decoding.beam}; set decoding.samples={n_best}"
        )
    if isinstance(decoding, GreedyConfig) and n_best > 1:
        raise ConfigError(
            f"greedy search finds one output, not {n_best}; use a beam: --beam {n_best} (beam={n_best} in Python)"
        )
