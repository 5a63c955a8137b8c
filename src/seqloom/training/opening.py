"""Opening a session: from a recipe and a folder to the first step, or to where it was left."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch

from seqloom.config.load import dump
from seqloom.config.run import RunConfig
from seqloom.config.task import ForecastConfig
from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.core.storage import (
    explained,
    read_manifest,
    remove_leftovers,
    remove_leftovers_beside,
    replace_listed,
)
from seqloom.data.example import Example, Split
from seqloom.data.examples import Examples
from seqloom.data.layout import Layout
from seqloom.data.parts import first_of_each_part
from seqloom.data.splits import merge_references, read_split
from seqloom.data.stream import BatchStream
from seqloom.data.text_windows import WindowedText
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.runs.bundle import create_run, read_setup
from seqloom.runs.soundness import CONFIG, JOURNAL, is_run
from seqloom.tasks.build import learn_task
from seqloom.tasks.task import Trainable
from seqloom.training.averaging import build_averager
from seqloom.training.checkpoint import (
    changes_since,
    refuse_other_config,
    restore_checkpoint,
)
from seqloom.training.distributed import World
from seqloom.training.fast import (
    Batching,
    ahead,
    build_layout,
    choose_batching,
    choose_precision,
    is_recorded,
)
from seqloom.training.journal import Event, Journal, Report
from seqloom.training.optimizer import build_optimizer
from seqloom.training.session import Session


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """One process at a time writes to a run folder; the lock dies with its holder."""
    path = folder.with_name(f".{folder.name}.lock")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have removed the file since it was opened here.
            held = path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))
        except OSError:
            held = False
        if not held:
            raise StorageError(
                f"{folder}: another process is training in this folder; wait for it, or choose "
                "another with --run"
            )
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def open_session(
    config: RunConfig, folder: Path, resume: bool, world: World, report: Report
) -> Session:
    """From a recipe to a session at its first step, or where it was left.

    Data, vocabulary and model are looked at first: a recipe that cannot be trained leaves no folder.
    """
    if world.leads:
        _refuse_folder(config, folder, resume)
    world.wait()
    task = read_setup(folder)[1] if resume else learn_task(config)
    train = _corpus(config, task, "train", report)
    dev = _corpus(config, task, "dev", report)
    torch.manual_seed(config.training.seed)
    model = build_model(config.model, task.signature)
    batching = choose_batching(config, world.device)
    layout = build_layout(batching, config.training.batch_tokens, train)
    _refuse_too_long(layout, model, train, dev)
    if world.leads:
        _make_folder(config, folder, resume, task, {"corpus": train.digest, "batching": batching})
    world.wait()
    batching = read_manifest(folder).get("batching", "padded")
    model.to(world.device)
    session = Session(
        model=model,
        optimizer=build_optimizer(
            config.training.optimizer, model, is_recorded(config.training, world.device)
        ),
        averager=build_averager(config.training.averaging),
        stream=_stream(config, train, batching, world),
        config=config,
        folder=folder,
        task=task,
        dev=dev,
        dev_examples=_dev_examples(config),
        world=world,
        precision=choose_precision(config.training, task.signature.target, world.device),
        journal=Journal(folder / JOURNAL),
        report=report,
    )
    if resume:
        _go_on(session)
    return session


def _stream(config: RunConfig, train: Examples, batching: Batching, world: World) -> BatchStream:
    settings = config.training
    layout = build_layout(batching, settings.batch_tokens, train)
    stream = BatchStream(
        train, layout, settings.seed, world.rank, world.size, config.data.temperature
    )
    return ahead(stream) if world.device.type == "cuda" else stream


def _go_on(session: Session) -> None:
    """Take a session to where it was left, and say if something there was damaged."""
    try:
        for problem in restore_checkpoint(session):
            text = f"{problem}; training goes on from step {session.step:,}, which is whole"
            session.tell(Event("note", session.step, {"text": text}))
        if changes := changes_since(session):
            text = (
                "the result may differ in its last bits from a run that was never stopped "
                f"({'; '.join(changes)})"
            )
            session.tell(Event("note", session.step, {"text": text}))
    except BaseException:
        session.journal.close()
        raise


def _refuse_folder(config: RunConfig, folder: Path, resume: bool) -> None:
    """Is this a place to begin, or to go on by this recipe?"""
    remove_leftovers_beside(folder)
    if resume and not is_run(folder):
        raise ConfigError(f"{folder}: there is no run to resume; leave --resume out to start one")
    if not resume and is_run(folder):
        raise ConfigError(
            f"{folder}: holds a run already; go on with it by --resume, or choose another --run"
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file; choose another --run")
    if not resume and folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: is not empty and not a run; choose another --run")
    if resume:
        remove_leftovers(folder)
        refuse_other_config(read_setup(folder)[0], config, folder)


def _make_folder(
    config: RunConfig, folder: Path, resume: bool, task: Trainable, facts: Mapping[str, str]
) -> None:
    """Make the run folder, or make sure that the one there is of this data."""
    if not resume:
        create_run(folder, config, task, facts)
        return
    if read_manifest(folder)["corpus"] != facts["corpus"]:
        raise DataError(
            f"{folder}: the training data is not what it was when this run was started, so it "
            "cannot go on as if nothing had happened; restore the data, or train again in another "
            "--run folder"
        )
    if read_setup(folder)[0] != config:
        # What may change is part of the recipe from now on: the next resume goes by it.
        replace_listed(folder, CONFIG, dump(config).encode())


def _corpus(config: RunConfig, task: Trainable, split: Split, report: Report) -> Examples:
    def progress(examples: int) -> None:
        report(Event("tokenise", 0, {"split": split, "examples": examples}))

    return task.corpus(config, split, progress)


def _dev_examples(config: RunConfig) -> list[Example]:
    """The first few dev sentences of every part, which are translated at every evaluation."""
    if isinstance(config.task, ForecastConfig):
        return []  # the loss says it all
    examples = read_split(config.data, "dev")
    if config.data.merge_references:
        examples = iter(merge_references(examples))
    return first_of_each_part(examples, config.training.evaluate_examples)


def _refuse_too_long(layout: Layout, model: Model, train: Examples, dev: Examples) -> None:
    """No example may be longer than a batch or than the model's positions reach: nothing is cut
    silently."""
    for variant in train.variants():
        layout.refuse_too_long(variant.source_lengths, variant.target_lengths)
        problems = _beyond_positions(model, variant, "train") + _beyond_positions(model, dev, "dev")
        if problems:
            raise DataError(
                "lines are longer than the model's positions reach:\n" + "\n".join(problems)
            )


def _beyond_positions(model: Model, corpus: Examples, split: Split) -> list[str]:
    problems = []
    sides = (
        ("source", corpus.source_lengths, model.max_source_length, "encoder"),
        ("target", corpus.target_lengths, model.max_target_length, "decoder"),
    )
    for side, lengths, limit, part in sides:
        if lengths is None or limit is None:
            continue
        longer = int((lengths + 1 > limit).sum())
        if longer:
            if isinstance(corpus, WindowedText):
                remedy = f"set data.{split}.length = {limit}"
            elif split == "train":
                remedy = f"leave them out by data.filter.max_{side}_tokens = {limit - 1}"
            else:
                remedy = "take them out of its files"  # no filter touches what is scored
            problems.append(
                f"  {split}: {longer} {side}s have more than {limit} tokens, the longest "
                f"{int(lengths.max()) + 1}; set model.{part}.positions.max_length = "
                f"{int(lengths.max()) + 1}, or {remedy}"
            )
    return problems
