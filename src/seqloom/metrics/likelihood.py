"""Perplexity and related scores, computed from the probability of the targets under a model."""

import math
from dataclasses import dataclass

from seqloom.core.errors import DataError
from seqloom.metrics.score import Score


@dataclass(frozen=True)
class Likelihood:
    """The log-probability of targets, and the number of tokens, characters and words in them.

    log_probability: Σ log p over all tokens, in nats
    tokens:          number of predicted tokens, including END or line ends
    characters:      number of characters of the text
    words:           number of words of the text, plus one for each END or line end
    """

    log_probability: float
    tokens: int
    characters: int
    words: int = 0

    def __add__(self, other: "Likelihood") -> "Likelihood":
        return Likelihood(
            self.log_probability + other.log_probability,
            self.tokens + other.tokens,
            self.characters + other.characters,
            self.words + other.words,
        )


def perplexity(likelihood: Likelihood) -> Score:
    """exp(-Σ log p / tokens). It is n for a model that chooses uniformly among n tokens."""
    value = _exponential(_nats_per(likelihood, likelihood.tokens, "tokens"))
    return Score("perplexity", value, None, False)


def perplexity_per_word(likelihood: Likelihood) -> Score:
    """exp(-Σ log p / words)

    Models with different tokenizers can be compared by this score, if no tokenizer replaces words
    by an unknown token.
    """
    value = _exponential(_nats_per(likelihood, likelihood.words, "words"))
    return Score("perplexity per word", value, None, False)


def nats_per_token(likelihood: Likelihood) -> Score:
    """Mean negative log-probability of a token, in nats: -Σ log p / tokens"""
    value = _nats_per(likelihood, likelihood.tokens, "tokens")
    return Score("nats per token", value, None, False)


def bits_per_token(likelihood: Likelihood) -> Score:
    """Mean negative log-probability of a token, in bits: -Σ log2 p / tokens"""
    value = _nats_per(likelihood, likelihood.tokens, "tokens") / math.log(2)
    return Score("bits per token", value, None, False)


def nats_per_character(likelihood: Likelihood) -> Score:
    """-Σ log p / characters. Comparable between models with different tokenizers."""
    value = _nats_per(likelihood, likelihood.characters, "characters")
    return Score("nats per character", value, None, False)


def bits_per_character(likelihood: Likelihood) -> Score:
    """-Σ log2 p / characters. Comparable between models with different tokenizers."""
    value = _nats_per(likelihood, likelihood.characters, "characters") / math.log(2)
    return Score("bits per character", value, None, False)


def _nats_per(likelihood: Likelihood, count: int, unit: str) -> float:
    if count <= 0:
        raise DataError(f"the targets cannot be scored: there are no {unit} to predict")
    return -likelihood.log_probability / count


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
