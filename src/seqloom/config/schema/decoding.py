"""[decoding] and [engine]: how a trained model computes its outputs."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.schema.names import EngineKind, StoppingRule
from seqloom.config.schema.section import PartConfig, Section
from seqloom.extensions.registry import Point


class RuleExtensionConfig(ExtensionConfig):
    """A user-defined rule that forbids tokens during decoding, a `seqloom.decoding.Rule`."""

    extension_point: ClassVar[Point] = "rule"


class SearchRulesConfig(PartConfig):
    """Settings shared by all searches: constraints on outputs, and how outputs are scored."""

    extension_point: ClassVar[str] = "search"
    min_length: int = Field(0, ge=0)
    """Minimum number of tokens before END. Default: 0."""
    max_length: int | None = Field(None, gt=0)
    """Maximum number of tokens, including END. Default: twice the source length plus 32, at most
    256."""
    no_repeat_ngram: int = Field(0, ge=0)
    """Forbid any n-gram of this length to occur twice in an output. 0 allows repetitions. Default:
    0."""
    allow_unknown: bool = False
    """Allow the unknown token in outputs. Default: false."""
    rules: tuple[RuleExtensionConfig, ...] = ()
    """Rules of your own that forbid tokens at each step, as a list of tables with kind =
    "module:Name". Default: []."""
    stop_at_newline: bool = False
    """Stop an output at the first newline. For long text, where outputs otherwise continue up to
    max_length. Default: false."""
    length_counts_end: bool = False
    """Count END as a token when a score is divided by the length of the output. If false, the
    length is the number of tokens before END, and an empty output has length 1. Default: false."""
    score_prefix: bool = True
    """Add the log-probabilities of forced tokens, such as a prefix or the tag of the target language,
    to the score of an output. If false, a forced token counts as certain, as in transformers.
    Default: true."""

    @property
    def hypotheses_per_input(self) -> int:
        """Number of hypotheses that the search extends in parallel for each input."""
        return 1

    @property
    def beam_width(self) -> int | None:
        """Width of the beam: 1 for greedy search; None for searches without a beam."""
        return None

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        if self.max_length is not None and self.max_length <= self.min_length:
            raise ValueError(
                f"min_length = {self.min_length} tokens and END are longer than max_length = "
                f"{self.max_length}; make max_length at least {self.min_length + 1}"
            )
        return self


class GreedyConfig(SearchRulesConfig):
    """Greedy search: selects the most probable token at every step."""

    builds: ClassVar[str] = "seqloom.decoding.greedy:Greedy"
    kind: Literal["greedy"] = "greedy"
    length_penalty: float = Field(1.0, ge=0)
    """Length penalty of the reported score, which is log p / length^penalty. With 0 the score is
    log p, with 1 it is the mean log p per token. Default: 1.0."""

    @property
    def beam_width(self) -> int | None:
        return 1


class SamplingRulesConfig(SearchRulesConfig):
    """Settings shared by all methods that sample tokens at random."""

    temperature: float = Field(1.0, gt=0)
    """Temperature of the softmax. Values below 1 sharpen the distribution, values above 1 flatten
    it. Default: 1.0."""
    top_k: int = Field(0, ge=0)
    """Sample only from the k most probable tokens. 0 means all tokens. Default: 0."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Sample only from the smallest set of tokens whose total probability is at least this (nucleus
    sampling). Default: 1.0."""
    epsilon: float = Field(0.0, ge=0, lt=1)
    """Sample only from tokens with at least this probability, or take the most probable one if
    there are none (epsilon sampling; Hewitt et al. 2022). Default: 0.0."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of the random generator. Default: 0."""
    length_penalty: float = Field(1.0, ge=0)
    """Length penalty of the reported score, which is log p / length^penalty. With 0 the score is
    log p, with 1 it is the mean log p per token. Default: 1.0."""


class SampleConfig(SamplingRulesConfig):
    """Sampling: draws a token from the model's distribution at every step."""

    builds: ClassVar[str] = "seqloom.decoding.sampling:Sampling"
    kind: Literal["sample"] = "sample"
    samples: int = Field(1, ge=1)
    """Number of outputs to sample per source. Default: 1."""

    @property
    def hypotheses_per_input(self) -> int:
        return self.samples


class BeamConfig(SearchRulesConfig):
    """Beam search: keeps the `width` best hypotheses at every step."""

    builds: ClassVar[str] = "seqloom.decoding.beam:Beam"
    kind: Literal["beam"] = "beam"
    width: int = Field(5, ge=1)
    """Number of hypotheses per source. Wider beams are slower and seldom better beyond 10. Default:
    5."""
    length_penalty: float = Field(1.0, ge=0)
    """Length penalty: hypotheses are ranked by log p / length^penalty. 0 prefers short outputs, 1
    ranks by the mean log p per token. Default: 1.0."""
    finished: int | None = Field(None, ge=1)
    """Stop after this many finished hypotheses of a source, that is, hypotheses that have generated
    END. Default: the width of the beam."""
    stopping: StoppingRule = "count"
    """When the search stops, once `finished` hypotheses have ended. "count" stops at once. "estimate"
    continues while an active hypothesis has a better score, at its current length, than the worst of
    the `finished` best finished hypotheses. "bound" continues while an active hypothesis could still
    get a better score before max_length. These are early_stopping = true, false and "never" of
    transformers. A beam of width 1 always uses "count". Default: "count"."""
    extra_candidate: bool = False
    """Extend each hypothesis by its width + 1 most probable tokens, not by `width`. Then `width`
    candidates without END remain even if one of the tokens is END, as in transformers and
    CTranslate2. Default: false."""
    rank_unfinished: bool = False
    """Rank hypotheses that reach max_length by their score among the finished hypotheses, as
    transformers does. If false, finished hypotheses come first. Default: false."""

    @property
    def hypotheses_per_input(self) -> int:
        return self.width

    @property
    def beam_width(self) -> int | None:
        return self.width


class ExhaustiveConfig(SearchRulesConfig):
    """Exhaustive search: scores every output of at most max_length tokens and selects the one with
    the highest score. This is possible only for small vocabularies and short outputs."""

    builds: ClassVar[str] = "seqloom.decoding.exhaustive:Exhaustive"
    kind: Literal["exhaustive"] = "exhaustive"
    length_penalty: float = Field(1.0, ge=0)
    """Length penalty: outputs are ranked by log p / length^penalty. 0 prefers short outputs, 1
    ranks by the mean log p per token. Default: 1.0."""
    max_sequences: int = Field(1_000_000, ge=1)
    """Maximum number of outputs to score. If more are possible, the search raises an error before
    it starts. Default: 1000000."""


class MinimumBayesRiskConfig(SamplingRulesConfig):
    """Minimum Bayes risk decoding: selects the candidate that is most similar to the other
    candidates (Eikema and Aziz 2020; Freitag et al. 2022).

    The candidates are `samples` sampled outputs and the `beam` hypotheses of a beam search. Each
    candidate is scored with every other candidate as its reference. The candidate with the highest
    mean score is selected. This is much slower than greedy search, which generates one output per
    source: the model generates `samples` + `beam` outputs per source, and the CPU compares every
    pair of them.
    """

    kind: Literal["minimum-bayes-risk"] = "minimum-bayes-risk"
    samples: int = Field(32, ge=0)
    """Number of candidates to sample per source. Default: 32."""
    beam: int = Field(0, ge=0)
    """Width of a beam whose hypotheses are added to the candidates. 0 uses no beam. Default: 0."""
    utility: Literal["chrf", "bleu"] = "chrf"
    """Similarity of two outputs: sacrebleu's sentence chrF or sentence BLEU. Default: "chrf"."""
    epsilon: float = Field(0.02, ge=0, lt=1)
    """Sample only from tokens with at least this probability, or take the most probable one if
    there are none (epsilon sampling; Hewitt et al. 2022). Default: 0.02."""

    @property
    def hypotheses_per_input(self) -> int:
        return self.samples + self.beam

    @model_validator(mode="after")
    def _check_candidates(self) -> Self:
        if self.samples + self.beam == 0:
            raise ValueError(
                "samples and beam are both 0, so there are no candidates; set one of them"
            )
        return self


SearchConfig = GreedyConfig | SampleConfig | BeamConfig | ExhaustiveConfig
"""All searches except minimum Bayes risk decoding, which compares complete outputs instead of
extending outputs token by token."""
DecodingConfig = Annotated[
    GreedyConfig | SampleConfig | BeamConfig | ExhaustiveConfig | MinimumBayesRiskConfig,
    Field(discriminator="kind"),
]


class EngineConfig(Section):
    """The engine that computes the outputs of a trained run."""

    kind: EngineKind = "auto"
    """Engine. "auto" uses "ctranslate2" for Transformers on a CPU if it supports the model and the search,
    and "torch" otherwise. "compiled" runs the same search as "torch" in compiled code, for one text
    at a time on a CPU. Default: "auto"."""
    precision: Literal["auto", "int8", "float32", "bf16"] = "auto"
    """Precision of ctranslate2: int8 or float32. "auto" uses int8 on machines where it is faster
    (x86_64, aarch64), if a check shows that int8 hardly changes the model's probabilities. Otherwise
    it uses float32. torch uses float32, unless this setting is "bf16". bf16 is for torch on a GPU: it
    is faster, and scores differ slightly. Default: "auto"."""
