"""How fast and how well it goes, told every now and then."""

import math
import time

import torch

from seqloom.training.journal import Event
from seqloom.training.schedule import takes_risks
from seqloom.training.session import Session
from seqloom.training.step import StepResult, refuse_non_finite

JOURNAL_EVERY = 20
"""Steps between two lines of the journal about the loss."""
REPORT_EVERY = 0.5
"""Seconds between two reports to whoever watches."""


class Meter:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.last: StepResult | None = None
        self.began = self.told = time.monotonic()
        self.before = session.seconds
        self.first_step = session.step
        self._empty()

    def _empty(self) -> None:
        self.loss = torch.zeros((), device=self.session.world.device)
        self.targets = 0
        self.since = time.monotonic()

    def seconds(self) -> float:
        """Time spent on this run, earlier sittings included."""
        return self.before + time.monotonic() - self.began

    def add(self, result: StepResult) -> None:
        self.last = result
        # Weighted by targets, and left on the device: reading a number makes a GPU wait.
        self.loss += result.loss * result.targets
        self.targets += result.targets
        step = self.session.step
        if step % JOURNAL_EVERY == 0:
            self.session.tell(self._event())
            self._empty()
        elif time.monotonic() - self.told > REPORT_EVERY and self.session.world.leads:
            self.session.report(self._event())

    def _event(self) -> Event:
        self.told = time.monotonic()
        step = self.session.step
        settings = self.session.config.training
        loss = float(self.loss) / self.targets
        if not math.isfinite(loss) and self.last is not None:
            refuse_non_finite(self.session.model, self.last)
        per_step = (self.told - self.began) / (step - self.first_step)
        left = per_step * (settings.steps - step)
        if settings.stopping.max_minutes is not None:
            left = min(left, 60 * settings.stopping.max_minutes - self.seconds())
        data = {
            "steps": settings.steps,
            "loss": loss,
            **self._perplexity(loss),
            "learning_rate": float(self.session.optimizer.param_groups[0]["lr"]),
            "tokens_per_second": self.targets / max(self.told - self.since, 1e-9),
            "seconds_left": max(left, 0.0),
        }
        return Event("step", step, data)

    def _perplexity(self, loss: float) -> dict[str, float]:
        """exp(loss), unless smoothing, R-Drop or risk make the loss more than the model's likelihood."""
        settings = self.session.config.training
        step = self.session.step
        more = settings.label_smoothing or settings.r_drop or takes_risks(settings, step)
        return {} if more else {"perplexity": math.exp(min(loss, 100.0))}
