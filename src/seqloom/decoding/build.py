"""From [decoding] to a search."""

from typing import assert_never

from seqloom.config.schema.decoding import (
    BeamConfig,
    ExhaustiveConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
    SearchRulesConfig,
)
from seqloom.decoding.beam import Beam
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.rules import Rules
from seqloom.decoding.sample import Sample
from seqloom.decoding.search import Search


def build_rules(config: SearchRulesConfig) -> Rules:
    """The limits that every search obeys; `max_length` travels with each request instead."""
    return Rules(config.min_length, config.no_repeat_ngram, config.allow_unknown)


def build_search(config: SearchConfig) -> Search:
    """The search that a recipe describes."""
    rules, exponent = build_rules(config), config.length_exponent
    match config:
        case GreedyConfig():
            return Greedy(exponent, rules)
        case SampleConfig():
            return Sample(
                temperature=config.temperature,
                top_k=config.top_k,
                top_p=config.top_p,
                epsilon=config.epsilon,
                samples=config.samples,
                seed=config.seed,
                length_exponent=exponent,
                rules=rules,
            )
        case BeamConfig():
            return Beam(config.width, config.finished, exponent, rules)
        case ExhaustiveConfig():
            return Exhaustive(config.max_sequences, exponent, rules)
        case _:
            assert_never(config)
