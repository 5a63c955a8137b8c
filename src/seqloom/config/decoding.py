"""[decoding]: how an output is searched for."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.section import Section


class RulesConfig(Section):
    """Limits that every search obeys."""

    min_length: int = Field(0, ge=0)
    """Tokens before END is allowed."""
    max_length: int | None = Field(None, gt=0)
    """Tokens at most, END included. Left out: twice the source and 32, never above 256."""
    no_repeat_ngram: int = Field(0, ge=0)
    """No sequence of this many tokens occurs twice in an output; 0 allows repeats."""
    allow_unknown: bool = False
    """May the unknown token be put out?"""

    @model_validator(mode="after")
    def _leaves_room(self) -> Self:
        if self.max_length is not None and self.max_length <= self.min_length:
            raise ValueError(
                f"min_length = {self.min_length} leaves no room for END within max_length = "
                f"{self.max_length}; make max_length at least {self.min_length + 1}"
            )
        return self


class GreedyConfig(RulesConfig):
    """The most probable token at every step."""

    kind: Literal["greedy"] = "greedy"
    length_exponent: float = Field(1.0, ge=0)


class SampleConfig(RulesConfig):
    """A token drawn from the model's distribution at every step."""

    kind: Literal["sample"] = "sample"
    temperature: float = Field(1.0, gt=0)
    """Below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = Field(0, ge=0)
    """Draw only from the k most probable tokens; 0 means from all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draw only from the smallest set of tokens that holds this share of the probability."""
    samples: int = Field(1, ge=1)
    """Outputs drawn for each source."""
    seed: int = Field(0, ge=0, lt=2**63)
    length_exponent: float = Field(1.0, ge=0)


class BeamConfig(RulesConfig):
    """The `width` best beginnings, extended together."""

    kind: Literal["beam"] = "beam"
    width: int = Field(5, ge=1)
    length_exponent: float = Field(1.0, ge=0)
    """Scores are log p / length^exponent: 0 prefers short outputs, 1 is the mean per token."""
    finished: int | None = Field(None, ge=1)
    """Stop after this many finished hypotheses. Left out: as many as the beam is wide."""


class ExhaustiveConfig(RulesConfig):
    """Every output up to max_length: the true optimum, for small trees only."""

    kind: Literal["exhaustive"] = "exhaustive"
    length_exponent: float = Field(1.0, ge=0)
    max_sequences: int = Field(1_000_000, ge=1)
    """Refuse when the tree has more leaves than this."""


DecodingConfig = Annotated[
    GreedyConfig | SampleConfig | BeamConfig | ExhaustiveConfig, Field(discriminator="kind")
]
