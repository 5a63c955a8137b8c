"""Builds a search from the [decoding] section of a recipe."""

from typing import assert_never

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    ExhaustiveConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
    SearchRulesConfig,
)
from seqloom.decoding.beam import Beam
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import LengthNormalisation
from seqloom.decoding.rules import Rules
from seqloom.decoding.sampling import Sampling
from seqloom.decoding.search import Search


def build_rules(config: SearchRulesConfig) -> Rules:
    """Build the rules that forbid tokens during a search.

    They do not include `max_length`, which is part of each `SearchRequest`.
    """
    return Rules(
        config.min_length, config.no_repeat_ngram, config.allow_unknown, config.score_prefix
    )


def build_normalisation(config: DecodingConfig) -> LengthNormalisation:
    """Build the length normalisation of the scores of a search."""
    return LengthNormalisation(config.length_penalty, config.length_counts_end)


def build_search(config: SearchConfig) -> Search:
    """Build the search that a recipe describes."""
    rules, length_penalty = build_rules(config), config.length_penalty
    counts_end = config.length_counts_end
    match config:
        case GreedyConfig():
            return Greedy(length_penalty, rules, counts_end)
        case SampleConfig():
            return Sampling(
                temperature=config.temperature,
                top_k=config.top_k,
                top_p=config.top_p,
                epsilon=config.epsilon,
                samples=config.samples,
                seed=config.seed,
                length_penalty=length_penalty,
                rules=rules,
                length_counts_end=counts_end,
            )
        case BeamConfig():
            return Beam(config.width, config.finished, length_penalty, rules, counts_end)
        case ExhaustiveConfig():
            return Exhaustive(config.max_sequences, length_penalty, rules, counts_end)
        case _:
            assert_never(config)
