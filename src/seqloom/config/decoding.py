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
    one_line: bool = False
    """The end of a line ends an output. For running text, which goes on and on otherwise."""

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


class DrawingConfig(RulesConfig):
    """How tokens are drawn."""

    temperature: float = Field(1.0, gt=0)
    """Below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = Field(0, ge=0)
    """Draw only from the k most probable tokens; 0 means from all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draw only from the smallest set of tokens that holds this share of the probability."""
    epsilon: float = Field(0.0, ge=0, lt=1)
    """Draw only from tokens that are at least this probable, or else the most probable one."""
    seed: int = Field(0, ge=0, lt=2**63)
    length_exponent: float = Field(1.0, ge=0)


class SampleConfig(DrawingConfig):
    """A token drawn from the model's distribution at every step."""

    kind: Literal["sample"] = "sample"
    samples: int = Field(1, ge=1)
    """Outputs drawn for each source."""


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


class MinimumBayesRiskConfig(DrawingConfig):
    """Of many outputs the one most like all the others (Eikema and Aziz 2020; Freitag et al. 2022).

    Candidates are drawn, or found by a beam, or both. Each is scored with every other one as its
    reference, and the highest mean wins. The cost: `samples` + `beam` outputs for each source
    where greedy search makes one, and a comparison of each pair of them on the CPU.
    """

    kind: Literal["minimum-bayes-risk"] = "minimum-bayes-risk"
    samples: int = Field(32, ge=0)
    """Candidates drawn for each source."""
    beam: int = Field(0, ge=0)
    """Candidates that a beam of this width finds, added to the drawn ones."""
    utility: Literal["chrf", "bleu"] = "chrf"
    """How like each other two outputs are: sacrebleu's sentence chrF or sentence BLEU."""
    epsilon: float = Field(0.02, ge=0, lt=1)
    """Draw only from tokens that are at least this probable, or else the most probable one."""

    @model_validator(mode="after")
    def _has_candidates(self) -> Self:
        if self.samples + self.beam == 0:
            raise ValueError(
                "samples and beam are both 0, so there is nothing to choose from; set one of them"
            )
        return self


SearchConfig = GreedyConfig | SampleConfig | BeamConfig | ExhaustiveConfig
"""What a search can do by itself, token by token; the rest compares whole texts."""
DecodingConfig = Annotated[
    GreedyConfig | SampleConfig | BeamConfig | ExhaustiveConfig | MinimumBayesRiskConfig,
    Field(discriminator="kind"),
]
