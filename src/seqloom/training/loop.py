"""The training loop."""

import gc
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.allocator import set_malloc_thresholds
from seqloom.core.device import best_device
from seqloom.core.errors import TrainingError
from seqloom.data.batching.mixture import group_shares, groups_of
from seqloom.runs.recipe import load_recipe, read_events
from seqloom.training.checkpoint import save_checkpoint
from seqloom.training.distributed import join_world
from seqloom.training.evaluation import evaluate
from seqloom.training.event_log import Event, EventCallback
from seqloom.training.fast.cuda_graphs import CapturedSteps
from seqloom.training.fast.select import compiles_layers, uses_cuda_graphs
from seqloom.training.loss import batch_loss
from seqloom.training.optimizer import set_learning_rate
from seqloom.training.out_of_memory import halve_largest, own_problem, split_batches
from seqloom.training.parallel.failures import report_failures
from seqloom.training.progress import LOG_EVERY, MAX_DELAY, ProgressMeter
from seqloom.training.schedule import learning_rate_factor, uses_minimum_risk
from seqloom.training.session import Session
from seqloom.training.setup import continues_job, lock_folder, open_session
from seqloom.training.signals import Interrupted, SignalState, catch_signals
from seqloom.training.step import (
    SeededBatch,
    StepResult,
    check_step_is_finite,
    check_weights_are_finite,
    train_step,
)

MAX_FROZEN_AT_START = 1000
"""Maximum number of objects that Python itself freezes when it starts. Python 3.12 freezes some hundred."""
MAX_LISTED_EXAMPLES = 10
"""Maximum number of training examples that an error message lists."""


@dataclass(frozen=True)
class Summary:
    """The result of a training run.

    step:   the last step
    best:   best dev score; None if nothing was evaluated
    reason: why training ended: "done", "patience", "time" or "signal"
    signal: number of the signal that ended training; None if no signal ended it
    general_before: scores on the general dev set at the first evaluation, by name
    general_best:   scores on the general dev set at the step of the best dev score, by name

    The general dev set is a second dev set, which has no influence on training. If there is none,
    `general_before` and `general_best` are empty.
    """

    folder: Path
    step: int
    best: float | None
    best_step: int
    reason: str
    signal: int | None = None
    general_before: Mapping[str, float] = field(default_factory=dict)
    general_best: Mapping[str, float] = field(default_factory=dict)


def train(
    recipe: RunConfig | str | Path | Mapping[str, Any],
    folder: str | Path,
    *,
    resume: bool = False,
    report: EventCallback = lambda event: None,
) -> Summary:
    """Train a model and write it to a run folder.

    recipe: a loaded recipe, the name of a bundled recipe ("demo"), a TOML file, or a dict
    folder: the run folder. Unless `resume` is set, it must be empty or not exist yet
    resume: continue from the last checkpoint in `folder`
    report: called with every event (progress, evaluation, checkpoint …)
    """
    config = recipe if isinstance(recipe, RunConfig) else load_recipe(recipe).config
    folder = Path(folder)
    if folder.name in ("", ".."):
        # Resolve "." and "..", because the names of the lock file and of temporary folders are
        # derived from the name of the folder.
        folder = folder.resolve()
    with (
        join_world(best_device(), config.training.collective_timeout) as world,
        report_failures(world),
        lock_folder(folder) if world.is_main else nullcontext(),
    ):
        session = open_session(
            config,
            folder,
            world.broadcast(resume or (world.is_main and continues_job(folder))),
            world,
            report if world.is_main else _notes_only(report),
        )
        try:
            session.stream.start()
            # Signals are caught only from here on. Before, there is nothing to save.
            freezes = frozen_objects() if world.device.type == "cuda" else nullcontext()
            with catch_signals() as signals, freezes:
                # Call this only after the corpus is read: memory freed by reading should go back to
                # the system, whereas memory freed by training steps should be reused.
                set_malloc_thresholds()
                progress = ProgressMeter(session)
                session.captured_steps = capture_steps(session)
                session.log(Event("start", session.step, _start_data(session)))
                # A resumed run may already be finished, or may have stopped before an evaluation
                # that was due. A fine-tuning evaluates and saves its start weights.
                is_due = session.step > 0 or config.training.start is not None
                reason = _after_step(session, progress, signals) if is_due else None
                while reason is None:
                    with _locate_failure(session):
                        progress.add(take_step(session))
                        reason = _after_step(session, progress, signals)
        finally:
            if session.captured_steps is not None:
                session.captured_steps.close()
            session.stream.close()
            session.event_log.close()
    score = session.best_score
    # Other machines may not see the folder.
    events = read_events(folder) if world.is_main else []
    general = {event["step"]: event["general"] for event in events if "general" in event}
    return Summary(
        folder,
        session.step,
        score.best,
        score.best_step,
        reason,
        signals.signal,
        general_before=next(iter(general.values()), {}),
        general_best=general.get(score.best_step, {}),
    )


@contextmanager
def frozen_objects() -> Iterator[None]:
    """Context manager in which the garbage collector ignores all objects that exist at its start.

    Searching them takes up to 0.2 seconds. Python threads stop during a search, so the GPU has no work.
    If the caller has already frozen objects, this context manager does nothing.
    """
    if gc.get_freeze_count() > MAX_FROZEN_AT_START:
        yield
        return
    gc.collect()  # Garbage, such as the session of an earlier training, must not be frozen.
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _notes_only(report: EventCallback) -> EventCallback:
    """Return a callback that passes only events of the kind "note" to `report`.

    All ranks except rank 0 use this callback. A note says, for example, that the rank has repaired
    damaged data. Rank 0 reports progress for all ranks.
    """
    return lambda event: report(event) if event.kind == "note" else None


def take_step(session: Session) -> StepResult:
    """Take one optimiser step. If memory runs out, repeat it with smaller batches."""
    settings, step, world = session.config.training, session.step + 1, session.world
    # The ranks take the batches of a step in turn. `next` returns the next batch of this rank.
    batches = [
        SeededBatch(next(session.stream), batch_seed(settings.seed, step, index))
        for index in range(world.rank, session.batches_per_step, world.size)
    ]
    factor = learning_rate_factor(settings.schedule, step, settings.steps)
    set_learning_rate(session.optimizer, settings.optimizer.learning_rate * factor)
    run_step: Callable[[Sequence[SeededBatch]], StepResult] = partial(
        train_step,
        session.model,
        session.optimizer,
        compute_loss=partial(batch_loss, session, step),
        clip=settings.clip,
        world=world,
        gradients=session.gradients,
    )
    if session.captured_steps is not None and not uses_minimum_risk(settings, step):
        run_step = session.captured_steps.step
    parts = split_batches(batches, session.max_part_tokens)
    while True:
        try:
            result = run_step(parts)
            break
        except torch.OutOfMemoryError as error:
            problem = own_problem(error, session)
        # The exception is released here. Its traceback references tensors.
        parts = halve_largest(parts, problem, session)
    session.averager.after_step(session.model)
    session.step = step
    return result


def capture_steps(session: Session) -> CapturedSteps | None:
    """Return the object that captures training steps as CUDA graphs and replays them.

    Returns None if steps are not captured. Nothing is captured yet: each graph is captured when its
    batch shape first occurs.
    """
    settings = session.config.training
    if not uses_cuda_graphs(session.config, session.world.device):
        return None
    layout, ranks = session.stream.layout, session.world.size
    compiles = compiles_layers(session.config, session.model, layout, session.precision, ranks)
    # Captured steps use teacher forcing and no minimum risk training, so the loss does not depend
    # on the step number.
    compute_loss = partial(batch_loss, session, 0)
    return CapturedSteps(
        session.model, session.optimizer, compute_loss, settings.clip, session.world, compiles
    )


def _after_step(session: Session, progress: ProgressMeter, signals: SignalState) -> str | None:
    """Evaluate the model if due, and save a checkpoint if due.

    Returns the reason to stop training, or None to continue.
    """
    settings, step = session.config.training, session.step

    def check_signals() -> None:
        # All ranks call this function equally often, so they stop together.
        if session.world.any(signals.signal is not None):
            raise Interrupted

    max_minutes = settings.stopping.max_minutes
    is_last = step >= settings.steps
    is_out_of_time = max_minutes is not None and session.world.any(
        progress.seconds() > 60 * max_minutes
    )
    evaluation_due = is_last or is_out_of_time or step % settings.evaluate_every == 0
    reason = None
    try:
        check_signals()
        if evaluation_due and step > session.evaluated:
            with progress.paused():
                evaluate(session, check_signals)
    except Interrupted:
        reason = "signal"
    else:
        if is_last:
            reason = "done"
        elif session.best_score.should_stop(settings.stopping.patience):
            reason = "patience"
        elif is_out_of_time:
            reason = "time"
    if reason is not None:
        progress.flush()
        check_weights_are_finite(session.model)
        score = session.best_score
        data = {"reason": reason, "best": score.best, "best_step": score.best_step}
        # Log this event before the checkpoint is written, because the checkpoint stores the size of
        # the event log.
        session.log(Event("end", step, data))
        _save(session, progress, is_final=True)
    elif step % settings.checkpoint_every == 0 and session.saved != (step, session.evaluated):
        with progress.paused():
            _save(session, progress)
    return reason


def _save(session: Session, progress: ProgressMeter, is_final: bool = False) -> None:
    """Write a checkpoint.

    is_final: True at the end of training

    Raises a TrainingError if the last loss, the gradient norm or a weight is not finite.
    """
    if progress.last is not None:
        check_step_is_finite(session.model, progress.last)
    check_weights_are_finite(session.model)
    session.seconds = progress.seconds()
    save_checkpoint(session, is_final)
    session.report(Event("checkpoint", session.step))
    session.saved = (session.step, session.evaluated)
    session.world.barrier()


def batch_seed(seed: int, step: int, index: int) -> int:
    """Return the number that torch is seeded with before a batch.

    It depends only on the seed of the recipe, the step, and the index of the batch in the step. A
    resumed run therefore draws the same random numbers on any number of ranks, and checkpoints need
    no random state.
    """
    digest = hashlib.sha256(f"{seed} {step} {index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _start_data(session: Session) -> dict[str, Any]:
    report = session.stream.corpus.report
    data = {
        "parameters": sum(parameter.numel() for parameter in session.model.parameters()),
        "examples": len(session.stream.corpus),
        "dev_examples": len(session.dev),
        "steps": session.config.training.steps,
        "device": str(session.world.device),
        "threads": torch.get_num_threads(),
        "ranks": session.world.size,
        "precision": session.precision,
        "folder": str(session.folder),
        "corpus": asdict(report),
    }
    groups = groups_of(report)
    if len(groups) > 1:
        shares = group_shares(groups, session.stream.temperature, session.stream.replay_share)
        data["parts"] = [asdict(share) for share in shares]
    return data


@contextmanager
def _locate_failure(session: Session) -> Iterator[None]:
    """Context manager that adds a location to the message of a TrainingError.

    The location is the number of the step and the indices of its training examples. On a GPU, losses
    are read several steps later. If the error occurs after the step has been taken, the location is
    therefore only an interval of steps.
    """
    step, position = session.step + 1, session.stream.position
    try:
        yield
    except TrainingError as error:
        is_taken = session.step == step
        if is_taken and session.world.device.type != "cpu":
            first = max(1, step - LOG_EVERY - MAX_DELAY)
            raise TrainingError(
                f"{session.folder}: between steps {first:,} and {step:,}: {error}"
            ) from error
        examples = session.stream.examples_from(position, session.batches_per_step)
        listed = ", ".join(str(example) for example in examples[:MAX_LISTED_EXAMPLES])
        more = len(examples) - MAX_LISTED_EXAMPLES
        raise TrainingError(
            f"{session.folder}: step {step:,}: {error}. Training examples of this step, counted "
            f"from 0 after filters: {listed}{f' and {more:,} more' if more > 0 else ''}"
        ) from error
