"""The training loop."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from seqloom.config.run import RunConfig
from seqloom.core.allocation import before_training
from seqloom.core.sequences import Batch
from seqloom.data.mixture import parts_of, shares_of
from seqloom.runs.devices import best_device
from seqloom.tasks.objective import Objective
from seqloom.training.checkpoint import save_checkpoint
from seqloom.training.distributed import World, join_world
from seqloom.training.evaluation import evaluate
from seqloom.training.fast import is_recorded
from seqloom.training.feeding import feed
from seqloom.training.interruption import Interrupted, Interruption, heed_signals
from seqloom.training.journal import Event, Report
from seqloom.training.meter import Meter
from seqloom.training.opening import only_writer, open_session
from seqloom.training.optimizer import set_rate
from seqloom.training.recorded import Recorder, compile_parts
from seqloom.training.room import in_parts_that_fit
from seqloom.training.schedule import rate_factor, takes_risks, truth_share
from seqloom.training.session import Session
from seqloom.training.step import (
    StepResult,
    refuse_non_finite,
    refuse_non_finite_weights,
    train_step,
)
from seqloom.training.trouble import explained_trouble


@dataclass(frozen=True)
class Summary:
    """How a training ended.

    reason: done · patience · time · signal
    """

    folder: Path
    step: int
    best: float | None
    best_step: int
    reason: str
    signal: int | None = None


def train(
    config: RunConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    report: Report = lambda event: None,
) -> Summary:
    """Train by a recipe into a run folder; with `resume`, go on where it was left."""
    folder = Path(folder)
    if folder.name in ("", ".."):
        folder = folder.resolve()  # what is written beside the folder is called after it
    with join_world(best_device()) as world, _writing(folder, world):
        session = open_session(config, folder, resume, world, report)
        try:
            # Before this a signal ends the process at once: there is nothing yet to save.
            with heed_signals() as signals:
                return _run(session, signals)
        finally:
            session.stream.close()
            session.journal.close()


def _run(session: Session, signals: Interruption) -> Summary:
    before_training()  # but after a corpus was read, which is not needed again
    meter = Meter(session)
    session.recorder = _recorder(session)
    _announce(session)
    reason = _settle(session, meter, signals) if session.step else None
    while reason is None:
        place = session.stream.position
        with explained_trouble(session, place):
            meter.add(_take_step(session))
            reason = _settle(session, meter, signals)
    return Summary(
        session.folder,
        session.step,
        session.progress.best,
        session.progress.best_step,
        reason,
        signals.signal,
    )


def _take_step(session: Session) -> StepResult:
    """The next batches, all that is random about this step, and the optimiser's step."""
    settings, step = session.config.training, session.step + 1
    batches = [next(session.stream) for _ in range(settings.accumulate)]
    _draw_from(settings.seed, step, session.world)
    set_rate(
        session.optimizer,
        settings.optimizer.learning_rate * rate_factor(settings.schedule, step, settings.steps),
    )
    result = in_parts_that_fit(partial(_step, session, step), batches, session)
    session.averager.after_step(session.model)
    session.step = step
    return result


def _step(session: Session, step: int, batches: Sequence[Batch]) -> StepResult:
    """The plain way, or the same replayed."""
    if session.recorder is not None and not takes_risks(session.config.training, step):
        return session.recorder.step(batches)
    return train_step(
        session.model,
        session.optimizer,
        [batch.to(session.world.device) for batch in batches],
        partial(_loss, session, step),
        session.config.training.clip,
        session.world,
    )


def _recorder(session: Session) -> Recorder | None:
    settings = session.config.training
    if not is_recorded(settings, session.world.device):
        return None
    if settings.compile:
        compile_parts(session.model)
    return Recorder(
        session.model,
        session.optimizer,
        # Only what is taught by the truth is recorded, and there all steps are alike.
        partial(_loss, session, 0),
        settings.clip,
        session.world,
    )


def _loss(session: Session, step: int, batch: Batch) -> Tensor:
    """The summed loss of a batch, fed as the recipe says."""
    settings = session.config.training
    risk = settings.risk if takes_risks(settings, step) else None
    objective = Objective(settings.label_smoothing, settings.r_drop, risk)
    with _precision(session):
        fed = feed(session.model, batch, truth_share(settings.feeding, step))
        return session.task.loss(session.model, fed, objective)


def _settle(session: Session, meter: Meter, signals: Interruption) -> str | None:
    """After a step: evaluate, save, and find out whether there is a reason to stop."""
    settings, step = session.config.training, session.step

    def pause() -> None:
        # All ranks evaluate the same batches, so all are asked here and leave together.
        if session.world.any(signals.signal is not None):
            raise Interrupted

    finished = step >= settings.steps
    out_of_time = _out_of_time(session, meter)
    due = finished or out_of_time or step % settings.evaluate_every == 0
    try:
        pause()
        if due and step > session.evaluated:
            evaluate(session, pause)
    except Interrupted:
        return _leave(session, meter, "signal")
    if finished:
        return _leave(session, meter, "done")
    if session.progress.should_stop(settings.stopping.patience):
        return _leave(session, meter, "patience")
    if out_of_time:
        return _leave(session, meter, "time")
    if step % settings.checkpoint_every == 0 and session.saved != (step, session.evaluated):
        _save(session, meter)
    return None


def _leave(session: Session, meter: Meter, reason: str) -> str:
    """Write down why, then save: the journal's last line is covered by the last checkpoint."""
    refuse_non_finite_weights(session.model)
    data = {
        "reason": reason,
        "best": session.progress.best,
        "best_step": session.progress.best_step,
    }
    session.tell(Event("end", session.step, data))
    _save(session, meter)
    return reason


def _save(session: Session, meter: Meter) -> None:
    """A checkpoint, unless a number in it is none."""
    if meter.last is not None:
        refuse_non_finite(session.model, meter.last)
    refuse_non_finite_weights(session.model)
    session.seconds = meter.seconds()
    if session.world.leads:
        save_checkpoint(session)
        session.report(Event("checkpoint", session.step))
    session.saved = (session.step, session.evaluated)
    session.world.wait()


def _out_of_time(session: Session, meter: Meter) -> bool:
    minutes = session.config.training.stopping.max_minutes
    return session.world.any(minutes is not None and meter.seconds() > 60 * minutes)


def _draw_from(seed: int, step: int, world: World) -> None:
    """Every random draw of a step depends on seed, step and rank alone, so nothing about
    randomness needs to be saved."""
    digest = hashlib.sha256(f"{seed} {step} {world.rank}".encode()).digest()
    torch.manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def _precision(session: Session) -> AbstractContextManager[object]:
    """bf16 arithmetic with fp32 weights where the recipe and the machine want it."""
    if session.precision == "bf16":
        return torch.autocast(session.world.device.type, dtype=torch.bfloat16)
    return nullcontext()


def _announce(session: Session) -> None:
    data = {
        "parameters": sum(parameter.numel() for parameter in session.model.parameters()),
        "examples": len(session.stream.corpus),
        "dev_examples": len(session.dev),
        "steps": session.config.training.steps,
        "device": str(session.world.device),
        "ranks": session.world.size,
        "precision": session.precision,
        "folder": str(session.folder),
        "corpus": asdict(session.stream.corpus.report),
    }
    parts = parts_of(session.stream.corpus.report)
    if len(parts) > 1:
        shares = shares_of(parts, session.config.data.temperature)
        data["parts"] = [asdict(share) for share in shares]
    session.tell(Event("start", session.step, data))


@contextmanager
def _writing(folder: Path, world: World) -> Iterator[None]:
    """The first rank alone holds the folder."""
    with only_writer(folder) if world.leads else nullcontext():
        yield
