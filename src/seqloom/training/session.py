"""Session: everything the loop moves."""

from dataclasses import dataclass, field
from pathlib import Path

import torch

from seqloom.config.run import RunConfig
from seqloom.data.example import Example
from seqloom.data.examples import Examples
from seqloom.data.stream import BatchStream
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import Trainable
from seqloom.training.averaging import Averager
from seqloom.training.distributed import World
from seqloom.training.fast import Precision
from seqloom.training.journal import Event, Journal, Report
from seqloom.training.recorded import Recorder
from seqloom.training.stopping import Progress


@dataclass
class Session:
    """A training in progress. What a checkpoint holds comes first."""

    model: Model
    optimizer: torch.optim.Optimizer
    averager: Averager
    stream: BatchStream
    step: int = field(default=0, init=False)
    evaluated: int = field(default=0, init=False)
    """The last step that was evaluated."""
    seconds: float = field(default=0.0, init=False)
    """Time spent in all sittings so far."""
    progress: Progress = field(default=Progress(), init=False)
    saved: tuple[int, int] | None = field(default=None, init=False)
    """Step and last evaluation of the last checkpoint: the same again need not be saved."""

    recorder: Recorder | None = field(default=None, init=False)
    """Takes the steps by replaying them, where that is faster."""
    largest: int | None = field(default=None, init=False)
    """Tokens of the largest part of a batch that fits into memory, once that is known."""

    config: RunConfig
    folder: Path
    task: Trainable
    dev: Examples
    dev_examples: list[Example]
    world: World
    precision: Precision
    journal: Journal
    report: Report

    def tell(self, event: Event) -> None:
        """Into the journal, and to whoever watches."""
        if self.world.leads:
            self.journal.write(event)
            self.report(event)
