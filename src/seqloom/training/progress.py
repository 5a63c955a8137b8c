"""Training progress: mean loss, speed and remaining time, reported at intervals."""

import math
import time

import torch

from seqloom.training.event_log import Event
from seqloom.training.schedule import uses_minimum_risk
from seqloom.training.session import Session
from seqloom.training.step import StepResult, check_step_is_finite

LOG_EVERY = 20
"""Number of steps between two `step` events in the event log."""
REPORT_EVERY = 0.5
"""Minimum number of seconds between two progress reports."""


class ProgressMeter:
    """Averages the results of training steps and reports them in events of the kind "step"."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.last: StepResult | None = None
        self.start_time = self.last_report = time.monotonic()
        self.earlier_seconds = session.seconds
        self.first_step = session.step
        self._reset()

    def _reset(self) -> None:
        self.loss = torch.zeros((), device=self.session.world.device)
        self.targets = 0
        self.interval_start = time.monotonic()

    def seconds(self) -> float:
        """Return the training time in seconds, including the time before a resume."""
        return self.earlier_seconds + time.monotonic() - self.start_time

    def add(self, result: StepResult) -> None:
        """Add the result of a training step to the averages. Report them at intervals."""
        self.last = result
        # The loss is weighted by the number of targets. The sum stays on the device, because
        # reading it would make the CPU wait for the GPU.
        self.loss += result.loss * result.targets
        self.targets += result.targets
        if self.session.step % LOG_EVERY == 0:
            self.session.log(self._event())
            self._reset()
        elif time.monotonic() - self.last_report > REPORT_EVERY and self.session.world.is_main:
            self.session.report(self._event())

    def _event(self) -> Event:
        self.last_report = time.monotonic()
        step, settings = self.session.step, self.session.config.training
        loss = float(self.loss) / self.targets
        if not math.isfinite(loss) and self.last is not None:
            check_step_is_finite(self.session.model, self.last)
        seconds_per_step = (self.last_report - self.start_time) / (step - self.first_step)
        seconds_left = seconds_per_step * (settings.steps - step)
        if settings.stopping.max_minutes is not None:
            seconds_left = min(seconds_left, 60 * settings.stopping.max_minutes - self.seconds())
        interval = max(self.last_report - self.interval_start, 1e-9)
        data = {
            "steps": settings.steps,
            "loss": loss,
            **self._perplexity(loss),
            "learning_rate": float(self.session.optimizer.param_groups[0]["lr"]),
            "tokens_per_second": self.targets / interval,
            "seconds_left": max(seconds_left, 0.0),
        }
        return Event("step", step, data)

    def _perplexity(self, loss: float) -> dict[str, float]:
        """Return {"perplexity": exp(loss)}.

        Returns {} if training uses label smoothing, R-Drop or minimum risk training, because the
        loss is then not the negative log-likelihood.
        """
        settings = self.session.config.training
        has_other_terms = (
            settings.label_smoothing
            or settings.r_drop
            or uses_minimum_risk(settings, self.session.step)
        )
        return {} if has_other_terms else {"perplexity": math.exp(min(loss, 100.0))}
