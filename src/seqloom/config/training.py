"""[training]: how the weights are found."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.kinds import ScoreName, SourceScoreName
from seqloom.config.section import Section


class AdamWConfig(Section):
    kind: Literal["adamw"] = "adamw"
    learning_rate: float = Field(1e-3, gt=0)
    """The highest rate of the schedule."""
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.98, ge=0, lt=1)
    epsilon: float = Field(1e-9, gt=0)
    weight_decay: float = Field(0.0, ge=0)


class ConstantConfig(Section):
    """Linear warm-up, then constant."""

    kind: Literal["constant"] = "constant"
    warmup: int = Field(0, ge=0)


class InverseSquareRootConfig(Section):
    """Linear warm-up, then falling with 1/√step (Vaswani et al. 2017)."""

    kind: Literal["inverse-square-root"] = "inverse-square-root"
    warmup: int | None = Field(None, ge=1)
    """Left out: a tenth of all steps, never more than 4,000."""


class CosineConfig(Section):
    """Linear warm-up, then half a cosine down to `floor` at the last step."""

    kind: Literal["cosine"] = "cosine"
    warmup: int = Field(0, ge=0)
    floor: float = Field(0.0, ge=0, le=1)
    """The share of the highest rate that is left at the end."""


ScheduleConfig = Annotated[
    ConstantConfig | InverseSquareRootConfig | CosineConfig, Field(discriminator="kind")
]


class TeacherForcingConfig(Section):
    """The decoder is always fed the true previous token."""

    kind: Literal["teacher-forcing"] = "teacher-forcing"


class FreeRunningConfig(Section):
    """The decoder is always fed its own previous token."""

    kind: Literal["free-running"] = "free-running"


class ScheduledSamplingConfig(Section):
    """A coin decides at every position; how often the truth wins falls from `start` to `end`."""

    kind: Literal["scheduled-sampling"] = "scheduled-sampling"
    shape: Literal["linear", "exponential", "inverse-sigmoid"] = "linear"
    start: float = Field(1.0, ge=0, le=1)
    """Share of true tokens fed in at the first step."""
    end: float = Field(0.5, ge=0, le=1)
    """Share of true tokens fed in from `steps` on."""
    steps: int = Field(10_000, ge=1)


FeedingConfig = Annotated[
    TeacherForcingConfig | FreeRunningConfig | ScheduledSamplingConfig,
    Field(discriminator="kind"),
]


class RiskConfig(Section):
    """Minimum risk (Shen et al. 2016): from some step on the model learns from outputs of its own,
    and from how good they are."""

    after: int = Field(ge=0)
    """Steps in which the truth teaches, before this begins."""
    samples: int = Field(5, ge=2)
    """Outputs that are drawn for each source and compared with each other."""
    utility: Literal["bleu", "chrf"] = "bleu"
    """What makes an output good: its likeness to the truth, sentence by sentence."""
    share: float = Field(1.0, gt=0, le=1)
    """Of the loss; the rest is the truth's, as before."""


class NoAveragingConfig(Section):
    kind: Literal["none"] = "none"


class LastWeightsConfig(Section):
    """The mean of the weights at the last few evaluations."""

    kind: Literal["last"] = "last"
    count: int = Field(5, ge=2)


class MovingAverageConfig(Section):
    """An exponential moving average of the weights, updated at every step."""

    kind: Literal["moving"] = "moving"
    decay: float = Field(0.999, gt=0, lt=1)


AveragingConfig = Annotated[
    NoAveragingConfig | LastWeightsConfig | MovingAverageConfig, Field(discriminator="kind")
]


class StoppingConfig(Section):
    """When to stop before the last step, and which weights are the best."""

    score: Literal["loss"] | ScoreName | SourceScoreName = "loss"
    """What makes weights the best: the loss on the dev split, or one of task.scores, of greedy
    outputs."""
    patience: int | None = Field(None, ge=1)
    """Stop after this many evaluations without a better score. Left out: never."""
    max_minutes: float | None = Field(None, gt=0)
    """Stop when this much time has passed. Left out: never."""


class TrainingConfig(Section):
    steps: int = Field(gt=0)
    """Optimiser steps."""
    batch_tokens: int = Field(4_096, gt=0)
    """Rows of a batch times its longest sequence stay below this."""
    batching: Literal["auto", "padded", "packed", "bucketed"] = "auto"
    """How examples lie in a batch. padded: one a row, like lengths together; packed: several pairs
    side by side in rows of one length (Transformers only); bucketed: one a row, padded to one of
    a few lengths. auto: padded, unless steps are recorded, which pays for few shapes alone: then
    packed or bucketed. A run keeps to what it began with."""
    loop: Literal["auto", "plain", "recorded"] = "auto"
    """plain: operation by operation. recorded: each shape of batch is recorded once as a CUDA
    graph of the whole step and replayed. auto: recorded on a GPU."""
    compile: bool = False
    """Compile the layers before they are recorded: some tens of seconds once, then faster."""
    accumulate: int = Field(1, ge=1)
    """Batches whose gradients are added up for one step."""
    optimizer: AdamWConfig = AdamWConfig()
    schedule: ScheduleConfig = InverseSquareRootConfig()
    clip: float | None = Field(1.0, gt=0)
    """The gradient's norm is cut down to this."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    r_drop: float = Field(0.0, ge=0)
    """R-Drop: every batch is read twice with different dropout, and this much of the difference
    between the two answers is added to the loss (the paper's α; 5 is common). Twice the time. 0: off."""
    risk: RiskConfig | None = None
    """Learn from outputs of its own, judged against the truth. Left out: from the truth alone."""
    feeding: FeedingConfig = TeacherForcingConfig()
    averaging: AveragingConfig = NoAveragingConfig()
    precision: Literal["fp32", "bf16", "auto"] = "auto"
    """bf16: arithmetic in bf16, weights in fp32. auto: bf16 on a GPU that has it, and on a CPU if a
    product was measured to be faster so; else, and where numbers are put out and no tokens, fp32."""
    evaluate_every: int = Field(1_000, ge=1)
    """Steps between two looks at the dev split."""
    evaluate_examples: int = Field(500, ge=1)
    """Dev sentences that are translated for the scores (the loss always uses all)."""
    checkpoint_every: int = Field(1_000, ge=1)
    """Steps between two checkpoints: at most this much is done again after a crash."""
    stopping: StoppingConfig = StoppingConfig()
    seed: int = Field(1, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.loop == "recorded" and not isinstance(self.feeding, TeacherForcingConfig):
            raise ValueError(
                f"loop = 'recorded' replays steps that are all alike, but feeding.kind = "
                f"'{self.feeding.kind}' feeds each of them other words; use loop = 'plain'"
            )
        if self.batching == "packed" and not isinstance(self.feeding, TeacherForcingConfig):
            raise ValueError(
                f"batching = 'packed' puts several pairs into a row, but feeding.kind = "
                f"'{self.feeding.kind}' lets the model run ahead, one pair a row; use 'padded'"
            )
        if self.risk is not None and self.batching == "packed":
            raise ValueError(
                "batching = 'packed' puts several pairs into a row, but training.risk draws outputs "
                "for each of them; use 'padded' or 'bucketed'"
            )
        if self.risk is not None and self.stopping.score == "loss":
            raise ValueError(
                "stopping.score = 'loss' is how probable the truth is, and training.risk makes other "
                "outputs likelier: weights of before would be kept as the best; set stopping.score "
                "to a score of outputs, such as 'bleu'"
            )
        schedule = self.schedule
        if schedule.warmup is not None and schedule.warmup >= self.steps:
            raise ValueError(
                f"schedule.warmup is {schedule.warmup} but there are only {self.steps} steps; "
                "make it smaller"
            )
        return self
