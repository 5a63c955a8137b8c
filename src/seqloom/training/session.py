"""Session: the state of a training run in progress, including the best dev score."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from seqloom.config.schema.recipe import RunConfig
from seqloom.data.batching.stream import BatchStream
from seqloom.data.corpus.dataset import Dataset
from seqloom.data.example import Example
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import Task
from seqloom.training.averaging import Averager
from seqloom.training.distributed import World
from seqloom.training.event_log import Event, EventCallback, EventLog
from seqloom.training.fast.cuda_graphs import CapturedSteps
from seqloom.training.fast.select import Precision
from seqloom.training.parallel.gradients import SINGLE_PROCESS, GradientSum


@dataclass(frozen=True)
class BestScore:
    """The best dev score so far.

    best:      the best score; None before the first evaluation
    best_step: the step of the best score. Of several evaluations with this score, it is the one with the
               lowest dev loss
    waited:    number of evaluations since the score was reached for the first time
    loss:      dev loss at `best_step`; None if it is unknown

    Checkpoints store these fields by name.
    """

    best: float | None = None
    best_step: int = 0
    waited: int = 0
    loss: float | None = None

    def after(self, score: float, step: int, higher_is_better: bool, loss: float) -> "BestScore":
        """Return the updated `BestScore` after a new evaluation.

        score: the dev score of the new evaluation
        step:  the training step of the new evaluation
        loss:  the dev loss of the new evaluation
        """
        if self.best is None or (score > self.best if higher_is_better else score < self.best):
            return BestScore(score, step, 0, loss)
        waited = self.waited + 1
        if score == self.best and (self.loss is None or loss < self.loss):
            return BestScore(score, step, waited, loss)
        return replace(self, waited=waited)

    def is_best(self, step: int) -> bool:
        """True if the best score so far was reached at this step."""
        return self.best_step == step

    def should_stop(self, patience: int | None) -> bool:
        """True after `patience` evaluations without a better score.

        If `patience` is None, returns False.
        """
        return patience is not None and self.waited >= patience


@dataclass(frozen=True)
class GeneralDevSet:
    """A second dev set, which is scored at every evaluation and has no influence on training.

    dataset:  the whole dev set, on which the loss is computed
    examples: the examples that every evaluation decodes
    """

    dataset: Dataset
    examples: list[Example]


@dataclass
class Session:
    """Everything the training loop reads and changes.

    Checkpoints store the state of the first fields, from `model` to `best_score`.
    """

    model: Model
    optimizer: torch.optim.Optimizer
    averager: Averager
    stream: BatchStream
    step: int = field(default=0, init=False)
    evaluated: int = field(default=0, init=False)
    """The last evaluated step. A fine-tuning starts with -1, because it evaluates step 0."""
    seconds: float = field(default=0.0, init=False)
    """Training time up to the last checkpoint, including the time before a resume."""
    best_score: BestScore = field(default=BestScore(), init=False)
    saved: tuple[int, int] | None = field(default=None, init=False)
    """`step` and `evaluated` at the last checkpoint. If both are unchanged, no new checkpoint is
    due."""

    captured_steps: CapturedSteps | None = field(default=None, init=False)
    """Replays training steps as CUDA graphs. None if steps are not captured."""
    max_part_tokens: int | None = field(default=None, init=False)
    """Batches with more tokens than this are split. None until the first out-of-memory error."""

    config: RunConfig
    folder: Path
    task: Task
    dev: Dataset
    dev_examples: list[Example]
    general: GeneralDevSet | None
    world: World
    precision: Precision
    event_log: EventLog
    report: EventCallback
    gradients: GradientSum = SINGLE_PROCESS
    """Computes gradients and adds them up over ranks."""

    @property
    def batches_per_step(self) -> int:
        """Number of batches in a step, on all ranks together."""
        return self.config.training.accumulate or 1

    def log(self, event: Event) -> None:
        """On the main rank, write an event to the event log and pass it to the report callback."""
        if self.world.is_main:
            self.event_log.write(event)
            self.report(event)
