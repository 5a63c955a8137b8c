"""Builds a search from the [decoding] section of a recipe."""

from typing import cast

from seqloom.config.schema.decoding import (
    DecodingConfig,
    RuleExtensionConfig,
    SearchConfig,
    SearchRulesConfig,
)
from seqloom.core.errors import ConfigError
from seqloom.decoding.hypothesis import LengthNormalisation
from seqloom.decoding.rules import Rule, Rules
from seqloom.decoding.search import Search
from seqloom.text.tokenizer import Tokenizer


def build_rules(config: SearchRulesConfig, tokenizer: Tokenizer | None = None) -> Rules:
    """Build the rules that forbid tokens during a search.

    The maximum length is not one of these rules. It is part of each `SearchRequest`.

    tokenizer: target tokenizer. It is passed to user-defined rules (setting decoding.rules), and
               is required only if there are such rules. Default: None
    """
    assert not config.rules or tokenizer is not None, "decoding.rules needs the target tokenizer"
    extensions = tuple(_build_rule(rule, tokenizer) for rule in config.rules)
    return Rules(
        config.min_length,
        config.no_repeat_ngram,
        config.allow_unknown,
        config.score_prefix,
        extensions,
    )


def _build_rule(config: RuleExtensionConfig, tokenizer: Tokenizer | None) -> Rule:
    rule = config.build_part(tokenizer=tokenizer)
    if not callable(rule):
        raise ConfigError(
            f"the rule '{config.kind}' must be a class with the method __call__, see "
            "seqloom.decoding.Rule"
        )
    return cast("Rule", rule)


def build_normalisation(config: DecodingConfig) -> LengthNormalisation:
    """Build the length normalisation that a search applies to the scores of its outputs."""
    return LengthNormalisation(config.length_penalty, config.length_counts_end)


def build_search(config: SearchConfig, tokenizer: Tokenizer | None = None) -> Search:
    """Build the search that a recipe describes.

    tokenizer: target tokenizer. It is passed to user-defined rules (setting decoding.rules), and
               is required only if there are such rules. Default: None
    """
    search: Search = config.build_part(rules=build_rules(config, tokenizer))
    return search
