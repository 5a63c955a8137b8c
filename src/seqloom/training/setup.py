"""Prepares a training session.

Checks the folder, loads the data, builds model and optimiser, and restores the checkpoint of a
resumed run.
"""

import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import torch

from seqloom.config.loading.toml import format_recipe
from seqloom.config.schema.corpora import HoldOutConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.config.schema.text import SubwordsConfig
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.core.launch import job_name, restarts
from seqloom.core.locks import lock_or_fail
from seqloom.core.storage import (
    read_manifest,
    remove_leftovers,
    remove_leftovers_beside,
    replace_listed_file,
)
from seqloom.data.batching.layout import BatchLayout
from seqloom.data.batching.prefetch import PrefetchStream
from seqloom.data.batching.stream import BatchStream
from seqloom.data.checks.data_files import changed_inputs, check_expected_files, remember_inputs
from seqloom.data.checks.lengths import max_length_error, max_length_problems
from seqloom.data.checks.sentences import resolve_sentence_splitting
from seqloom.data.corpus.corpus import Corpus
from seqloom.data.corpus.dataset import Dataset, ProgressCallback, ReadingProgress
from seqloom.data.corpus.long_text import LongTextDataset
from seqloom.data.example import Example, Split
from seqloom.data.readers.splits import first_of_each_group, merge_references, read_split
from seqloom.decoding.build import build_rules
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.runs.bundle import create_run, read_setup
from seqloom.runs.extensions import extension_changes
from seqloom.runs.integrity import (
    CONFIG,
    EVENT_LOG,
    checkpoint_store,
    is_run,
    weights_store,
)
from seqloom.tasks.build import learn_task
from seqloom.tasks.task import Task
from seqloom.tasks.token_task import TokenTask
from seqloom.training.averaging import build_averager
from seqloom.training.checkpoint import (
    check_same_recipe,
    environment_changes,
    has_other_batches,
    restore_checkpoint,
)
from seqloom.training.distributed import World
from seqloom.training.event_log import Event, EventCallback, EventLog, note
from seqloom.training.fast.select import (
    Batching,
    build_layout,
    choose_batching,
    choose_precision,
    uses_cuda_graphs,
)
from seqloom.training.fine_tuning.freezing import freeze
from seqloom.training.fine_tuning.start import Start, check_same_start, load_start, start_facts
from seqloom.training.optimizer import build_optimizer, restore_optimizer
from seqloom.training.parallel.agreement import check_equal_facts, check_equal_settings
from seqloom.training.parallel.gradients import (
    SINGLE_PROCESS,
    GradientSum,
    Replicas,
    checkpoint_activations,
)
from seqloom.training.session import GeneralDevSet, Session


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a run folder, so that only one process trains in it.

    The system releases the lock if the process dies.
    """
    problem = (
        f"{folder}: another process is training in this folder. Wait for it, or choose another "
        "folder with --run"
    )
    with lock_or_fail(folder.with_name(f".{folder.name}.lock"), problem):
        yield


def open_session(
    config: RunConfig, folder: Path, resume: bool, world: World, report: EventCallback
) -> Session:
    """Build data, model and optimiser, and restore the last checkpoint if `resume` is set.

    Data, vocabulary and model are checked before the folder is created.
    """
    check_equal_settings(config, world)
    if world.is_main:
        _check_folder(folder, resume)
        if warning := check_expected_files(config.data):
            report(note(warning))
    world.barrier()
    saved, saved_task = read_setup(folder) if resume else (None, None)
    config = _resolve_batches_per_step(config, saved, world)
    if saved is not None:
        check_same_recipe(saved, config, folder)
    start = _load_start(config, folder, resume)
    if world.is_main:
        _report_changed_inputs(config, report)
    task = saved_task or _build_task(config, start, report)
    train = _load_corpus(config, task, "train", report)
    dev = _load_corpus(config, task, "dev", report)
    general = _load_general(config, task, report, world.is_main)
    if world.is_main:
        remember_inputs(config.data)
    config = _resolve_splitting(config, saved)
    check_equal_facts({"training data (digest)": train.digest}, world)
    torch.manual_seed(config.training.seed)
    model = build_model(config.model, task.signature)
    if start is not None:
        start.assign_to(model)
    freeze(model, config.training.freeze)
    if isinstance(task, TokenTask):
        build_rules(config.decoding, task.target_tokenizer)  # reports an invalid rule now
    batching = choose_batching(config, world.device)
    layout = build_layout(batching, config.training.batch_tokens, train)
    _check_lengths(layout, model, train, dev, general)
    if world.is_main:
        facts = {"corpus": train.digest, "batching": batching, **start_facts(start)}
        if (job := job_name()) is not None:
            facts["job"] = job
        _prepare_folder(config, folder, saved, task, facts)
    world.barrier()
    _check_shared_folder(folder, world)
    # A resumed run keeps the batch layout of its first start, which is stored in the manifest.
    batching = read_manifest(folder)["batching"]
    model.to(world.device)
    if config.training.activation_checkpointing:
        checkpoint_activations(model)
    gradients = _build_gradients(config, model, world)
    session = Session(
        model=model,
        optimizer=build_optimizer(
            config.training.optimizer, model, uses_cuda_graphs(config, world.device)
        ),
        averager=build_averager(config.training.averaging),
        stream=_build_stream(config, train, batching, world),
        config=config,
        folder=folder,
        task=task,
        dev=dev,
        dev_examples=_read_dev_examples(config, train),
        general=general,
        world=world,
        # On a CPU, each rank measures speeds, so the ranks could choose differently.
        precision=world.broadcast(
            choose_precision(config.training, task.signature.target, world.device)
        ),
        event_log=EventLog(folder / EVENT_LOG),
        report=report,
        gradients=gradients,
    )
    if config.training.start is not None:
        session.evaluated = -1
    if start is not None and start.moments:
        moments = session.gradients.shard(start.optimizer_tensors(model))
        restore_optimizer(session.optimizer, model, moments)
    if resume:
        _resume(session)
    elif world.is_main:
        notes = () if start is not None else _small_vocabularies(config, task)
        for text in notes:
            session.log(note(text, session.step))
    return session


def continues_job(folder: Path) -> bool:
    """True if torchrun has restarted the job that created this run folder."""
    if not restarts() or not is_run(folder):
        return False
    return read_manifest(folder).get("job") == job_name()


def _resolve_batches_per_step(
    config: RunConfig, saved: RunConfig | None, world: World
) -> RunConfig:
    """Return the recipe with a value for training.accumulate, the number of batches per step.

    If the recipe does not set this number, a new run uses one batch per rank. A resumed run uses
    the number of its saved recipe, or 1 if that recipe sets none.
    """
    batches = config.training.accumulate
    if batches is None:
        batches = world.size if saved is None else saved.training.accumulate
    if (batches or 1) % world.size:
        raise ConfigError(
            f"training.accumulate: the number of batches per step is {batches or 1}, which cannot be "
            f"divided equally among {world.size} ranks. Start a number of ranks that divides "
            f"{batches or 1}, or train a new run with training.accumulate = {-(-(batches or 1) // world.size) * world.size}"
        )
    if saved is None and batches == 1:
        return config
    training = config.training.model_copy(update={"accumulate": batches})
    return config.model_copy(update={"training": training})


def _build_gradients(config: RunConfig, model: Model, world: World) -> GradientSum:
    """Return the object that computes gradients and sums them over the ranks.

    With FSDP, this function also divides the model among the ranks.
    """
    if not world.has_group:
        return SINGLE_PROCESS
    if config.training.parallel == "fsdp":
        from seqloom.training.parallel.sharding import Shards

        return Shards(model, world)
    return Replicas(model, may_vary=not config.model.is_static)


def _check_shared_folder(folder: Path, world: World) -> None:
    """Raise a ConfigError if a rank does not see the run folder that rank 0 has created."""
    hosts = world.gather((platform.node(), is_run(folder)))
    blind = sorted({host for host, sees_run in hosts if not sees_run})
    if blind:
        raise ConfigError(
            f"{folder.resolve()}: rank 0 has created this run folder on {hosts[0][0]}, but it is not "
            f"visible on {', '.join(blind)}. Choose a --run folder on a file system that all machines "
            "share"
        )


def prepare_data(config: RunConfig, report: EventCallback) -> dict[Split, Corpus]:
    """Tokenise the data of a new run, so that `open_session` finds it in the cache.

    The vocabularies are learned from the training data. A fine-tuning uses the vocabularies of the
    run that it starts from. Returns the tokenised splits; {} for a forecasting model, whose data
    needs no preparation.
    """
    start = None if config.training.start is None else load_start(config, config.training.start)
    _report_changed_inputs(config, report)
    task = _build_task(config, start, report)
    prepared: dict[Split, Corpus] = {}
    splits: tuple[Split, ...] = ("train", "dev")
    for split in splits:
        dataset = _load_corpus(config, task, split, report)
        if isinstance(dataset, LongTextDataset):
            dataset = dataset.corpus
        if isinstance(dataset, Corpus):
            prepared[split] = dataset
    remember_inputs(config.data)
    return prepared


def _report_changed_inputs(config: RunConfig, report: EventCallback) -> None:
    """Report the data files that have changed since they were last prepared."""
    if changed := changed_inputs(config.data):
        text = "data files have changed since they were last prepared, so they are prepared again: "
        report(note(text + ", ".join(changed)))


def _resolve_splitting(config: RunConfig, saved: RunConfig | None) -> RunConfig:
    """Replace text.split_sentences = "auto" by true or false.

    A new run decides from the training data. A resumed run uses the value of its saved recipe.
    """
    if saved is None:
        return resolve_sentence_splitting(config)
    if config.text.split_sentences != "auto":
        return config
    kept = {"split_sentences": saved.text.split_sentences}
    return config.model_copy(update={"text": config.text.model_copy(update=kept)})


def _build_task(config: RunConfig, start: Start | None, report: EventCallback) -> Task:
    """Return the task of a new run, which contains the vocabularies.

    A fine-tuning uses the task of the run that it starts from. Any other run learns its vocabularies
    from the data.
    """
    return start.task if start else learn_task(config, _progress("train", report))


def _load_start(config: RunConfig, folder: Path, resume: bool) -> Start | None:
    """Load the parent run that fine-tuning starts from.

    Returns None if the recipe names no parent. Also returns None if the run is resumed from a
    checkpoint, because the checkpoint contains everything that is needed from the parent.
    """
    settings = config.training.start
    if settings is None or (resume and checkpoint_store(folder).paths()):
        return None
    start = load_start(config, settings)
    if resume:
        check_same_start(folder, start)
    return start


def _load_general(
    config: RunConfig, task: Task, report: EventCallback, is_main: bool
) -> GeneralDevSet | None:
    """Load the general dev set: a second dev set, which has no influence on training.

    The recipe names its files in data.general. Missing files are an error.

    If data.general is not set and a run is fine-tuned, the general dev set is the dev split of that
    run, the parent. If files of the parent are missing, the main rank reports this, and the function
    returns None.
    """
    data = config.data.general_data
    if data is None:
        return None
    general = config.model_copy(update={"data": data})
    try:
        dataset = _load_corpus(general, task, "dev", report)
    except NotFoundError as error:
        if config.data.general:
            raise
        text = (
            "the score on the parent's dev split (general) is not computed, because files are "
            f"missing: {error}. Set data.parent.folder, or switch it off with data.parent.dev=[]"
        )
        if is_main:
            report(note(text))
        return None
    source = "data.general" if config.data.general else "the dev split of the parent"
    text = f"every evaluation also scores {source} ({len(dataset):,} examples), shown as general"
    if is_main:
        report(note(text))
    return GeneralDevSet(dataset, _read_dev_examples(general))


def _small_vocabularies(config: RunConfig, task: Task) -> Iterator[str]:
    """Yield a note for each subword vocabulary that is smaller than the recipe asks for."""
    if not isinstance(task, TokenTask):
        return
    source, target = task.source_tokenizer, task.target_tokenizer
    sides = [("target", target, config.text.target)]
    if source is not None and source is not target:
        sides.append(("source", source, config.text.tokenizer))
    for name, tokenizer, settings in sides:
        if isinstance(settings, SubwordsConfig) and tokenizer.size < settings.size:
            yield (
                f"the {name} vocabulary has {tokenizer.size:,} subwords instead of "
                f"{settings.size:,}, because the training text yields no more"
            )


def _build_stream(
    config: RunConfig, train: Dataset, batching: Batching, world: World
) -> BatchStream:
    settings = config.training
    layout = build_layout(batching, settings.batch_tokens, train)
    replay = config.data.replay
    stream = BatchStream(
        train,
        layout,
        settings.seed,
        world.rank,
        world.size,
        config.data.temperature,
        None if replay is None else replay.share,
    )
    if world.device.type != "cuda":
        return stream
    # A GPU copies from pinned memory without waiting for the CPU.
    return PrefetchStream(stream, lambda batch: batch.in_one_block(pin_memory=True))


def _resume(session: Session) -> None:
    """Restore the newest intact checkpoint.

    Log damage in newer checkpoints and in the event log. Also log what has changed since
    the checkpoint and may affect the result, such as the precision or the code of an extension.
    """
    try:
        for problem in restore_checkpoint(session):
            text = (
                f"{problem}; training resumes from the intact checkpoint of step {session.step:,}"
            )
            session.log(note(text, session.step))
        if changes := environment_changes(session):
            text = (
                "the result may differ in its last bits from an uninterrupted run "
                f"({'; '.join(changes)})"
            )
            session.log(note(text, session.step))
        if has_other_batches(session):
            text = (
                "the last checkpoint was written by a version of seqloom that forms other batches, so "
                "some training examples may be used twice or not at all in the current epoch"
            )
            session.log(note(text, session.step))
        for change in extension_changes(session.folder, session.config):
            session.log(note(change, session.step))
    except BaseException:
        session.event_log.close()
        raise


def _check_folder(folder: Path, resume: bool) -> None:
    """Raise a ConfigError if training cannot start in the folder or there is no run to resume.

    Also removes temporary files that an interrupted process left behind.
    """
    remove_leftovers_beside(folder)
    if resume and not is_run(folder):
        raise ConfigError(f"{folder}: no run to resume. Remove --resume to start a new one")
    if not resume and is_run(folder):
        raise ConfigError(
            f"{folder}: already contains a run. Continue it with --resume, or choose another --run"
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file. Choose another --run")
    if not resume and folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: contains files, but no run. Choose another --run")
    if resume:
        remove_leftovers(folder)


def _prepare_folder(
    config: RunConfig, folder: Path, saved: RunConfig | None, task: Task, facts: Mapping[str, str]
) -> None:
    """Create the folder of a new run, or update the folder of a resumed run.

    A resumed run stores its recipe if the recipe has changed. Raises a DataError if the training
    data has changed.

    saved: the recipe of a resumed run; None for a new run
    facts: entries for the manifest of a new run. "corpus" is the digest of the training data
    """
    if saved is None:
        create_run(folder, config, task, facts)
        checkpoint_store(folder).create()
        return
    if read_manifest(folder)["corpus"] != facts["corpus"]:
        raise DataError(
            f"{folder}: the training data has changed since this run was started, so it cannot be "
            "resumed. Restore the data, or train again in another --run folder"
        )
    if not weights_store(folder).paths():
        # The earlier command may have been killed before it created the store.
        checkpoint_store(folder).create()
    if saved != config:
        # Store the changed recipe, because the next resume is compared with it. Only settings in
        # MAY_CHANGE can differ here.
        replace_listed_file(folder, CONFIG, format_recipe(config).encode())


def _load_corpus(config: RunConfig, task: Task, split: Split, report: EventCallback) -> Dataset:
    return task.corpus(config, split, _progress(split, report))


def _progress(split: Split, report: EventCallback) -> ProgressCallback:
    """Return a callback that reports, as events, how much of a split has been read."""

    def progress(reading: ReadingProgress) -> None:
        data = asdict(reading)
        if text := data.pop("note"):
            report(note(text))
        else:
            report(Event("tokenise", 0, {"split": split, **data}))

    return progress


def _read_dev_examples(config: RunConfig, train: Dataset | None = None) -> list[Example]:
    """Return the dev examples that every evaluation decodes.

    These are the first `training.evaluate_examples` examples of the dev split. If the split has
    several groups, such as language pairs, the examples are taken from the groups in turn. The list
    is empty for a forecasting model.

    train: the prepared training split. It may also store the dev examples, if they were held out of
           the training data. If it does not, they are read from the data files
    """
    if isinstance(config.task, ForecastConfig):
        return []  # a forecasting model is scored by its loss only
    is_held_out = all(isinstance(corpus, HoldOutConfig) for corpus in config.data.dev)
    held_out = train.held_out("dev") if is_held_out and isinstance(train, Corpus) else None
    examples = read_split(config.data, "dev") if held_out is None else held_out
    if config.data.merge_references:
        examples = iter(merge_references(examples))
    return first_of_each_group(examples, config.training.evaluate_examples)


def _check_lengths(
    layout: BatchLayout,
    model: Model,
    train: Dataset,
    dev: Dataset,
    general: GeneralDevSet | None,
) -> None:
    """Raise a DataError if an example is too long for a batch or for the model.

    Examples are never truncated.
    """
    for variant in train.variants():
        layout.refuse_too_long(variant.source_lengths, variant.target_lengths)
        problems = _beyond_positions(model, variant, "train") + _beyond_positions(model, dev, "dev")
        if general is not None:
            problems += _beyond_positions(model, general.dataset, "general")
        if (error := max_length_error(problems)) is not None:
            raise error


def _beyond_positions(
    model: Model, corpus: Dataset, split: Literal["train", "dev", "general"]
) -> list[str]:
    """Check whether sources or targets are longer than the model allows.

    Returns a list of messages: one if any source is too long, and one if any target is too long.
    """
    return max_length_problems(
        split,
        {"source": corpus.source_lengths, "target": corpus.target_lengths},
        {"source": model.source_limits, "target": model.target_limits},
        isinstance(corpus, LongTextDataset),
    )
