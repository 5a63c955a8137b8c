"""Training progress: mean loss, speed and remaining time, reported at intervals."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.core.errors import TrainingError
from seqloom.training.event_log import Event
from seqloom.training.schedule import learning_rate_factor, uses_minimum_risk
from seqloom.training.session import Session
from seqloom.training.step import ADVICE, StepResult, check_step_is_finite

LOG_EVERY = 20
"""Number of steps between two `step` events in the event log."""
MAX_DELAY = 8
"""Maximum number of steps between a step and the report of its event."""
REPORT_EVERY = 0.5
"""Minimum number of seconds between two progress reports."""


@dataclass(frozen=True)
class _Interval:
    """The steps since the last event in the event log.

    step:          number of the last step
    targets:       number of targets of all steps
    loss:          sum of the losses of all targets, in host memory
    is_computed:   occurs when the GPU has computed `loss`; None: `loss` is already computed
    learning_rate: learning rate of the last step
    last:          result of the last step
    is_logged:     True if the event goes to the event log, False if it is only reported
    """

    step: int
    targets: int
    loss: Tensor
    is_computed: torch.cuda.Event | None
    learning_rate: float
    last: StepResult
    is_logged: bool


class ProgressMeter:
    """Averages the results of training steps and reports them in events of the kind "step".

    A GPU still computes a step when `add` is called with its result. If `add` waited for the loss, the
    GPU would be idle until the next step is launched. So the event of a step is reported a few steps
    later, or by `flush`.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.last: StepResult | None = None
        self.start_time = self.interval_start = self.last_interval = time.monotonic()
        self.earlier_seconds = session.seconds
        self.first_step = session.step
        self._waiting: _Interval | None = None
        self._is_asynchronous = session.world.device.type != "cpu"
        self._reset()

    def _reset(self) -> None:
        self.loss = torch.zeros((), device=self.session.world.device)
        self.targets = 0

    def seconds(self) -> float:
        """Return the training time in seconds, including the time before a resume."""
        return self.earlier_seconds + time.monotonic() - self.start_time

    def add(self, result: StepResult) -> None:
        """Add the result of a training step to the averages. Report them at intervals."""
        if self._waiting is not None and self._waiting.step <= self.session.step - MAX_DELAY:
            self.flush()
        self.last = result
        # The loss is weighted by the number of targets.
        self.loss += result.loss * result.targets
        self.targets += result.targets
        is_logged = self.session.step % LOG_EVERY == 0
        is_late = time.monotonic() - self.last_interval > REPORT_EVERY
        if is_logged or (is_late and self.session.world.is_main):
            self.flush()
            self.last_interval = time.monotonic()
            self._waiting = self._interval(result, is_logged)
        if is_logged:
            self._reset()
        if not self._is_asynchronous:
            self.flush()

    def flush(self) -> None:
        """Wait for the loss of an event that is due, and report the event."""
        interval, self._waiting = self._waiting, None
        if interval is None:
            return
        if interval.is_computed is not None:
            interval.is_computed.synchronize()
        now = time.monotonic()
        event = self._event(interval, now)
        if interval.is_logged:
            self.interval_start = now
            self.session.log(event)
        else:
            self.session.report(event)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Context manager for work that is not training. Its time does not count for the speed."""
        self.flush()
        start = time.monotonic()
        yield
        self.interval_start += time.monotonic() - start

    def _interval(self, result: StepResult, is_logged: bool) -> _Interval:
        settings, step = self.session.config.training, self.session.step
        factor = learning_rate_factor(settings.schedule, step, settings.steps)
        loss, is_computed = self.loss.clone(), None
        if loss.is_cuda:
            loss = torch.empty((), pin_memory=True).copy_(self.loss, non_blocking=True)
            is_computed = torch.cuda.Event()
            is_computed.record()
        rate = settings.optimizer.learning_rate * factor
        return _Interval(step, self.targets, loss, is_computed, rate, result, is_logged)

    def _event(self, interval: _Interval, now: float) -> Event:
        step, settings = interval.step, self.session.config.training
        loss = float(interval.loss) / interval.targets
        if not math.isfinite(loss):
            check_step_is_finite(self.session.model, interval.last)
            raise TrainingError(f"the mean loss is {loss}. {ADVICE}")
        seconds_per_step = (now - self.start_time) / (step - self.first_step)
        seconds_left = seconds_per_step * (settings.steps - step)
        if settings.stopping.max_minutes is not None:
            seconds_left = min(seconds_left, 60 * settings.stopping.max_minutes - self.seconds())
        seconds = max(now - self.interval_start, 1e-9)
        data = {
            "steps": settings.steps,
            "loss": loss,
            **self._perplexity(loss),
            "learning_rate": interval.learning_rate,
            "tokens_per_second": interval.targets / seconds,
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
