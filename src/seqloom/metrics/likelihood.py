"""How probable a model finds what is true."""

import math
from dataclasses import dataclass

from seqloom.core.errors import DataError
from seqloom.metrics.score import Score


@dataclass(frozen=True)
class Likelihood:
    """The log-probability of some outputs, and how much there was to predict.

    log_probability: Σ log p over all tokens, in nats
    tokens:          how many of them: all that was predicted, END or ends of lines too
    characters:      of the outputs as text
    words:           of the outputs as text, and one more for each END or end of a line
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
    """exp(-Σ log p / tokens): among how many equally likely tokens the model hesitates."""
    value = _exponential(_per(likelihood, likelihood.tokens, "tokens"))
    return Score("perplexity", value, None, False)


def perplexity_per_word(likelihood: Likelihood) -> Score:
    """exp(-Σ log p / words): comparable between models that cut text in different ways, as long as
    none of them calls a word unknown."""
    value = _exponential(_per(likelihood, likelihood.words, "words"))
    return Score("perplexity per word", value, None, False)


def nats_per_token(likelihood: Likelihood) -> Score:
    """-Σ log p / tokens"""
    value = _per(likelihood, likelihood.tokens, "tokens")
    return Score("nats per token", value, None, False)


def bits_per_token(likelihood: Likelihood) -> Score:
    """-Σ log2 p / tokens"""
    value = _per(likelihood, likelihood.tokens, "tokens") / math.log(2)
    return Score("bits per token", value, None, False)


def nats_per_character(likelihood: Likelihood) -> Score:
    """-Σ log p / characters: comparable between models that cut text in different ways."""
    value = _per(likelihood, likelihood.characters, "characters")
    return Score("nats per character", value, None, False)


def bits_per_character(likelihood: Likelihood) -> Score:
    """-Σ log2 p / characters"""
    value = _per(likelihood, likelihood.characters, "characters") / math.log(2)
    return Score("bits per character", value, None, False)


def _per(likelihood: Likelihood, count: int, what: str) -> float:
    if count <= 0:
        raise DataError(f"cannot be scored: there are no {what} to predict")
    return -likelihood.log_probability / count


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
