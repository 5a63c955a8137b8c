"""[training]: optimiser, schedule, batches, evaluation and stopping."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.extensions.unions import ByName
from seqloom.config.schema.names import ExtensionName, ModelPart, ScoreName
from seqloom.config.schema.section import Section


class AdamWConfig(Section):
    """The AdamW optimiser (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    learning_rate: float = Field(1e-3, gt=0)
    """Peak learning rate of the schedule. Default: 0.001."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the running mean of gradients. Default: 0.9."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Decay of the running mean of squared gradients. Default: 0.98."""
    epsilon: float = Field(1e-9, gt=0)
    """Constant that is added to the denominator for numerical stability. Default: 1e-09."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay. Default: 0.0."""


class ConstantConfig(Section):
    """Linear warm-up, then a constant learning rate."""

    kind: Literal["constant"] = "constant"
    warmup: int = Field(0, ge=0)
    """Number of warm-up steps. Default: 0."""


class InverseSquareRootConfig(Section):
    """Linear warm-up, then a learning rate that falls with 1/√step (Vaswani et al. 2017)."""

    kind: Literal["inverse-square-root"] = "inverse-square-root"
    warmup: int | None = Field(None, ge=1)
    """Number of warm-up steps. Default: a tenth of all steps, at most 4000."""


class CosineConfig(Section):
    """Linear warm-up, then a learning rate that follows half a period of a cosine from its peak to
    `floor` (Loshchilov and Hutter 2017)."""

    kind: Literal["cosine"] = "cosine"
    warmup: int = Field(0, ge=0)
    """Number of warm-up steps. Default: 0."""
    floor: float = Field(0.0, ge=0, le=1)
    """Learning rate at the last step, as a share of the peak. Default: 0.0."""


ScheduleConfig = Annotated[
    ConstantConfig | InverseSquareRootConfig | CosineConfig, Field(discriminator="kind")
]


class TeacherForcingConfig(Section):
    """Teacher forcing: the decoder reads the previous target token."""

    kind: Literal["teacher-forcing"] = "teacher-forcing"


class FreeRunningConfig(Section):
    """Free running: the decoder reads its own previous prediction."""

    kind: Literal["free-running"] = "free-running"


class ScheduledSamplingConfig(Section):
    """Scheduled sampling (Bengio et al. 2015): at each position, the decoder reads the previous
    target token with probability p, otherwise its own previous prediction. During training, p falls
    from `start` to `end`."""

    kind: Literal["scheduled-sampling"] = "scheduled-sampling"
    shape: Literal["linear", "exponential", "inverse-sigmoid"] = "linear"
    """Shape of the decrease. Default: "linear"."""
    start: float = Field(1.0, ge=0, le=1)
    """Share of target tokens at the first step. Default: 1.0."""
    end: float = Field(0.5, ge=0, le=1)
    """Share of target tokens from step `steps` on. Default: 0.5."""
    steps: int = Field(10_000, ge=1)
    """Number of steps over which the share falls. Default: 10000."""


DecoderInputConfig = Annotated[
    TeacherForcingConfig | FreeRunningConfig | ScheduledSamplingConfig,
    Field(discriminator="kind"),
]


class MinimumRiskConfig(Section):
    """Minimum risk training (Shen et al. 2016): after step `after`, the model samples outputs and
    learns to prefer those with a higher score."""

    after: int = Field(ge=0)
    """Number of steps of ordinary training before minimum risk training starts."""
    samples: int = Field(5, ge=2)
    """Number of outputs to sample per source. Default: 5."""
    utility: Literal["bleu", "chrf"] = "bleu"
    """Score that compares each sampled output with its reference. Default: "bleu"."""
    share: float = Field(1.0, gt=0, le=1)
    """Weight of the minimum risk loss. The ordinary loss has the weight 1 - share. Default: 1.0."""


class NoAveragingConfig(Section):
    """No averaging: each evaluation uses the current weights."""

    kind: Literal["none"] = "none"


class LastWeightsConfig(Section):
    """Averages the weights that the model had at each of the last `count` evaluations."""

    kind: Literal["last"] = "last"
    count: int = Field(5, ge=2)
    """Number of evaluations whose weights are averaged. Default: 5."""


class MovingAverageConfig(Section):
    """Each evaluation uses an exponential moving average of the weights of all steps."""

    kind: Literal["ema"] = "ema"
    decay: float = Field(0.999, gt=0, lt=1)
    """Weight of the previous average at each update; the current weights have the weight 1 - decay.
    During the first steps, the weight rises from a smaller value to this one. Smaller values suit
    short runs. Default: 0.999."""


AveragingConfig = Annotated[
    NoAveragingConfig | LastWeightsConfig | MovingAverageConfig, Field(discriminator="kind")
]


class StoppingConfig(Section):
    """Early stopping, and the choice of the best weights."""

    score: Annotated[Literal["loss"] | ScoreName | ExtensionName, ByName()] = "loss"
    """Score that selects the best weights: the loss on the dev split, or one of task.scores, which
    is computed on greedy outputs. Default: "loss"."""
    patience: int | None = Field(None, ge=1)
    """Stop after this many evaluations without improvement. Default: no early stopping."""
    max_minutes: float | None = Field(None, gt=0)
    """Stop after this many minutes. Default: no time limit."""


class StartConfig(Section):
    """Fine-tuning: training starts from the best weights of another run, the parent."""

    run: str
    """Run folder or packed file of the parent. `seqloom train RECIPE --from RUN` sets it. The model
    and the vocabulary are those of the parent."""
    optimizer: Literal["fresh", "continued"] = "fresh"
    """State of the optimiser at the start: "fresh" is empty, "continued" is the state in the last
    checkpoint of the parent. Default: "fresh"."""


class TrainingConfig(Section):
    """How a model is trained."""

    steps: int = Field(gt=0)
    """Number of optimiser steps."""
    batch_tokens: int = Field(4_096, gt=0)
    """Maximum size of a batch: the number of rows times the length of the longest sequence. Reduce
    it if a batch does not fit into memory. Default: 4096."""
    batching: Literal["auto", "padded", "packed", "bucketed"] = "auto"
    """Layout of a batch. "padded" has one pair per row and groups pairs of similar length. "packed"
    puts several pairs into rows of one fixed length (Transformers only). "bucketed" has one pair
    per row, padded to one of a few lengths. "auto" is "padded" if steps are not captured
    (see training.loop). Captured steps need few batch shapes, so for them "auto" is "packed" or
    "bucketed". A run keeps the layout it started with. Default: "auto"."""
    loop: Literal["auto", "plain", "captured"] = "auto"
    """How a step is executed. "plain" runs operation by operation. "captured" captures the whole
    step as a CUDA graph, once per batch shape, and replays it. "auto" captures on a GPU. Default:
    "auto"."""
    compile: Literal["auto"] | bool = "auto"
    """Compile the layers before steps are captured. Takes some tens of seconds once. "auto" compiles a
    Transformer on a single GPU if the run is so long that this saves time, and if Triton and a C
    compiler are installed. It does not compile layers for which seqloom has fused kernels, because
    these are faster: layers with ReLU, dot-product attention and no rotary positions, in bf16 and
    with rows of up to 64 tokens. Default: "auto"."""
    accumulate: int | None = Field(None, ge=1)
    """Number of batches whose gradients are added up for one step. On several ranks, this is the
    number of batches of all ranks together, and a multiple of the number of ranks. The run keeps
    this number if it is resumed on another number of ranks. Default: one batch per rank."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """How several ranks share the work. "ddp": every rank has the whole model. "fsdp": weights,
    gradients and optimiser state are divided among the ranks, for models that do not fit into the
    memory of one GPU. Default: "ddp"."""
    activation_checkpointing: bool = False
    """Keep only the inputs of Transformer layers for the backward pass, and compute everything else
    again. Needs less memory and about a third more time. Default: false."""
    collective_timeout: float = Field(600.0, gt=0)
    """Time limit, in seconds, for an exchange between ranks. If a rank is dead or stopped, training
    ends after this time with an error. Default: 600.0."""
    optimizer: AdamWConfig = AdamWConfig()
    """Optimiser. Default: kind "adamw"."""
    schedule: ScheduleConfig = InverseSquareRootConfig()
    """Schedule of the learning rate. Default: kind "inverse-square-root"."""
    clip: float | None = Field(1.0, gt=0)
    """Maximum norm of the gradient. "none" switches clipping off. Default: 1.0."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target probability that is spread over the whole vocabulary (Szegedy et al.
    2016). 0.1 is common for translation. Default: 0.0."""
    r_drop: float = Field(0.0, ge=0)
    """Weight α of R-Drop (Liang et al. 2021): each batch is computed twice with different dropout,
    and the divergence of the two predictions is added to the loss. Doubles the time; 5 is common.
    0.0 switches it off. Default: 0.0."""
    minimum_risk: MinimumRiskConfig | None = None
    """Minimum risk training: learn from sampled outputs and their scores. Default: off."""
    decoder_input: DecoderInputConfig = TeacherForcingConfig()
    """Inputs of the decoder in training. Default: kind "teacher-forcing"."""
    averaging: AveragingConfig = NoAveragingConfig()
    """Averaging of weights over steps. Default: kind "none"."""
    precision: Literal["fp32", "bf16", "auto"] = "auto"
    """Precision of arithmetic; weights are always stored in fp32. "auto" is bf16 on a GPU that
    supports it, and on a CPU if a measurement shows that matrix products are faster in bf16. In all
    other cases "auto" is fp32, and also always for forecasts, because bf16 has only 8 significant
    bits. Default: "auto"."""
    evaluate_every: int = Field(1_000, ge=1)
    """Number of steps between evaluations on the dev split. Default: 1000."""
    evaluate_examples: int = Field(500, ge=1)
    """Number of dev examples to decode for the scores. The loss always uses all examples. Default:
    500."""
    checkpoint_every: int = Field(1_000, ge=1)
    """Number of steps between checkpoints. After a crash, at most this many steps are repeated.
    Default: 1000."""
    stopping: StoppingConfig = StoppingConfig()
    """Early stopping, and the choice of the best weights. Default: no early stopping."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Seed of the initial weights, the order of the data and dropout. Default: 1."""
    start: StartConfig | None = None
    """Run to fine-tune. Default: training starts from random weights."""
    freeze: tuple[ModelPart, ...] = ()
    """Parts of the model that are not trained: "embeddings", "encoder", "decoder",
    "cross-attention" and "output". The parts do not include each other: "encoder" and "decoder" are
    without embeddings, and "decoder" is without cross-attention and output layer. Weights that
    several parts share are frozen with each of them. Default: []."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.loop == "captured" and not isinstance(self.decoder_input, TeacherForcingConfig):
            raise ValueError(
                f"loop = 'captured' replays identical steps, but with decoder_input.kind = "
                f"'{self.decoder_input.kind}' the decoder's inputs change at each step; use loop = 'plain'"
            )
        if self.batching == "packed" and not isinstance(self.decoder_input, TeacherForcingConfig):
            raise ValueError(
                f"batching = 'packed' puts several pairs into a row, but decoder_input.kind = "
                f"'{self.decoder_input.kind}' needs one pair per row; use 'padded'"
            )
        if self.minimum_risk is not None and self.batching == "packed":
            raise ValueError(
                "batching = 'packed' puts several pairs into a row, but training.minimum_risk samples "
                "outputs for each pair; use 'padded' or 'bucketed'"
            )
        if self.minimum_risk is not None and self.stopping.score == "loss":
            raise ValueError(
                "stopping.score = 'loss' does not fit training.minimum_risk: minimum risk training "
                "can increase the loss, so the weights from before minimum risk training would be "
                "chosen; set stopping.score to a score of outputs, such as 'bleu'"
            )
        if self.loop == "captured" and self.parallel == "fsdp":
            raise ValueError(
                "loop = 'captured' does not work with parallel = 'fsdp'; use loop = 'plain' or 'auto'"
            )
        if self.loop == "captured" and self.activation_checkpointing:
            raise ValueError(
                "loop = 'captured' does not work with activation_checkpointing = true; use loop = "
                "'plain' or 'auto'"
            )
        if self.parallel == "fsdp" and not isinstance(self.decoder_input, TeacherForcingConfig):
            raise ValueError(
                f"parallel = 'fsdp' supports only teacher forcing, not decoder_input.kind = "
                f"'{self.decoder_input.kind}'; use parallel = 'ddp'"
            )
        if self.parallel == "fsdp" and self.minimum_risk is not None:
            raise ValueError(
                "parallel = 'fsdp' does not support training.minimum_risk; use parallel = 'ddp'"
            )
        schedule = self.schedule
        if schedule.warmup is not None and schedule.warmup >= self.steps:
            raise ValueError(
                f"schedule.warmup is {schedule.warmup} but there are only {self.steps} steps; "
                "make the warmup smaller"
            )
        return self
