"""Chooses the search and the engine of a prediction, and checks them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    EngineConfig,
    GreedyConfig,
    MinimumBayesRiskConfig,
    SampleConfig,
    SearchRulesConfig,
)
from seqloom.config.schema.names import EngineKind
from seqloom.core.errors import ConfigError, DataError
from seqloom.inference.options import PredictionOptions

Search = TypeVar("Search", bound=SearchRulesConfig)


def check_texts(texts: Sequence[str | Path]) -> None:
    """Raise a DataError if `texts` is not a list of strings or paths."""
    if isinstance(texts, str | Path):
        raise DataError("texts must be a list: write [text] instead of text")
    for index, text in enumerate(texts):
        if not isinstance(text, str | Path):
            raise DataError(f"texts[{index}] is not a str but {text!r:.60}")


def _shared_settings(decoding: DecodingConfig) -> dict[str, Any]:
    """Return the settings that all kinds of search have.

    These are the length penalty and the search rules, for example the maximum length.
    """
    return decoding.model_dump(
        include={*SearchRulesConfig.model_fields, "length_penalty"} - {"kind"}
    )


def greedy_config(decoding: DecodingConfig) -> GreedyConfig:
    """Return a config of greedy search with the length penalty and the search rules of `decoding`.

    Search rules are settings that all kinds of search have, for example the maximum length.
    """
    return GreedyConfig(**_shared_settings(decoding))


def sampling_config(decoding: DecodingConfig, samples: int) -> SampleConfig:
    """Return a config of sampling with this number of samples.

    If `decoding` is a sampling config, its other settings are kept. Otherwise only the settings
    that all kinds of search have are kept, for example the maximum length.
    """
    if isinstance(decoding, SampleConfig):
        return decoding.model_copy(update={"samples": max(samples, 1)})
    return SampleConfig(samples=max(samples, 1), **_shared_settings(decoding))


def completion_search(
    decoding: DecodingConfig, options: PredictionOptions
) -> SampleConfig | GreedyConfig:
    """Return the config of the search with which a language model completes prompts.

    This is sampling, or greedy search if the option `temperature` is 0.
    """
    config: SampleConfig | GreedyConfig = (
        greedy_config(decoding)
        if options.temperature == 0
        else sampling_config(decoding, options.n_best)
    )
    settings = options.settings()
    if options.max_length is not None:
        settings["min_length"] = 0
    used = {name: value for name, value in settings.items() if name in type(config).model_fields}
    return _change_settings(config, used)


def beam_config(decoding: DecodingConfig, width: int) -> BeamConfig:
    """Return a config of beam search with this beam width.

    If `decoding` is a beam search config, its other settings are kept. Otherwise only the settings
    that all kinds of search have are kept, for example the maximum length.
    """
    if not isinstance(width, int) or width < 1:
        raise ConfigError(f"the beam width must be an integer of 1 or more, not {width!r}")
    if isinstance(decoding, BeamConfig):
        return decoding.model_copy(update={"width": width})
    return BeamConfig(width=width, **_shared_settings(decoding))


def resolve_decoding(recipe: DecodingConfig, options: PredictionOptions) -> DecodingConfig:
    """Return the config of the search to use.

    recipe:  the search of the recipe, which is used if the options name no other search
    options: may name another search, its beam width, and settings that replace those of the search
    """
    chosen = recipe if options.decoding is None else options.decoding
    if not isinstance(chosen, SearchRulesConfig):
        raise ConfigError(
            "decoding must be a config such as BeamConfig(width=5) or GreedyConfig() from "
            f"seqloom.config.schema.decoding, not {chosen!r:.60}"
        )
    if options.beam is not None:
        chosen = beam_config(chosen, options.beam)
    settings = options.settings()
    unknown = [name for name in settings if name not in type(chosen).model_fields]
    if unknown:
        raise ConfigError(
            f"{', '.join(unknown)}: the search '{chosen.kind}' has no such setting. Remove it, or "
            "choose another search with `decoding`"
        )
    return _change_settings(chosen, settings)


def _change_settings(config: Search, settings: dict[str, Any]) -> Search:
    """Return the config with other values of some settings. Raises ConfigError if one is invalid."""
    if not settings:
        return config
    try:
        return type(config).model_validate({**dict(config), **settings})
    except ValidationError as error:
        problems = [f"{each['loc'][0]}: {each['msg']}" for each in error.errors()]
        raise ConfigError("\n".join(["invalid options:", *problems])) from error


def resolve_engine(settings: EngineConfig, name: str | None) -> EngineConfig:
    """Return a copy of the settings with the engine `name`.

    If `name` is None, the settings are returned unchanged.
    """
    if name is None:
        return settings
    if name not in get_args(EngineKind):
        raise ConfigError(f"unknown engine '{name}'. Available: {', '.join(get_args(EngineKind))}")
    return settings.model_copy(update={"kind": name})


def check_n_best(decoding: DecodingConfig, n_best: int) -> None:
    """Raise a ConfigError if the search returns fewer than `n_best` outputs per text."""
    if n_best < 1:
        raise ConfigError(f"n_best must be 1 or more, not {n_best}")
    if isinstance(decoding, BeamConfig) and decoding.width < n_best:
        raise ConfigError(
            f"{n_best} outputs per text need a beam width of {n_best} or more, not "
            f"{decoding.width}. Use --beam {n_best} (beam={n_best} in Python)"
        )
    if isinstance(decoding, SampleConfig) and decoding.samples < n_best:
        raise ConfigError(
            f"{n_best} outputs per text need {n_best} samples or more, not {decoding.samples}. "
            f"Set decoding.samples={n_best}"
        )
    if isinstance(decoding, MinimumBayesRiskConfig) and decoding.samples + decoding.beam < n_best:
        raise ConfigError(
            f"{n_best} outputs per text need {n_best} candidates or more, but decoding.samples + "
            f"decoding.beam is {decoding.samples + decoding.beam}. Set decoding.samples={n_best}"
        )
    if isinstance(decoding, GreedyConfig) and n_best > 1:
        raise ConfigError(
            f"greedy search returns one output per text, not {n_best}. Use a beam: --beam {n_best} "
            f"(beam={n_best} in Python)"
        )
