"""Options of a prediction, and functions that choose its search and its engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

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
from seqloom.text.glossary import Glossary

Probabilities = Literal["none", "score", "tokens"]
"""The probabilities that a caller needs: none; the score of each output; or the score of each
output and the log-probabilities of its tokens."""


@dataclass(frozen=True)
class PredictionOptions:
    """Options of a prediction.

    n_best:        number of outputs per text
    attention:     if True, attention weights are returned
    prefixes:      one prefix per text. The output must start with the prefix. An empty prefix has
                   no effect. A text with a prefix is not split, and `pass_through` is ignored.
    first:         number of texts in earlier calls, if a long list is passed in several calls.
                   Random samples and line numbers in error messages are then the same as in a
                   single call.
    probabilities: "tokens": return the score of each output and the log-probability of each token.
                   "score": return only the scores. "none": return neither. The engine torch always
                   returns all. CTranslate2 is faster if it returns less. With "none", the scores
                   of its greedy outputs are NaN.
    to:            target language of a multilingual run. If it is a list, each text is translated
                   into the first language, the result into the second, and so on. If it is None,
                   every text must start with a language tag.
    heads:         if this and `attention` are True, the attention weights of every layer and head
                   are returned as well
    split:         if True, each text is split into sentences, and their outputs are joined. None:
                   the recipe decides (text.split_sentences).
    pass_through:  if True, parts that the model cannot translate, such as URLs and emoji, are copied
                   to the output. None: the recipe decides (text.pass_through).
    glossary:      pairs of a source phrase and a target phrase. If a text contains the source
                   phrase, its output must contain the target phrase.
    """

    n_best: int = 1
    attention: bool = True
    prefixes: Sequence[str] | None = None
    first: int = 0
    probabilities: Probabilities = "tokens"
    to: str | Sequence[str] | None = None
    heads: bool = False
    split: bool | None = None
    pass_through: bool | None = None
    glossary: Glossary | None = None


TEXT_ONLY = PredictionOptions(attention=False, probabilities="none")
WITH_ATTENTION = PredictionOptions()
UNSPLIT = PredictionOptions(split=False, pass_through=False)
"""Options with which the model reads each text as a whole: it is not split, and no parts of it are
copied."""


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
    return decoding.model_dump(include={*SearchRulesConfig.model_fields, "length_penalty"})


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


def resolve_decoding(
    recipe: DecodingConfig, beam: int | None, decoding: DecodingConfig | None
) -> DecodingConfig:
    """Return the config of the search to use.

    recipe:   the search of the recipe
    beam:     if given, use beam search of this width. Its other settings come from `decoding`, or
              from `recipe` if `decoding` is None
    decoding: if given, use this search instead of that of the recipe
    """
    chosen = recipe if decoding is None else decoding
    if not isinstance(chosen, SearchRulesConfig):
        raise ConfigError(
            "decoding must be a config such as BeamConfig(width=5) or GreedyConfig() from "
            f"seqloom.config.schema.decoding, not {decoding!r:.60}"
        )
    return chosen if beam is None else beam_config(chosen, beam)


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
