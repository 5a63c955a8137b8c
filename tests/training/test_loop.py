"""Whole training runs: when they stop, what they write, and how they resume."""

import gc
import math
import re
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe
from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.core.storage import find_damage
from seqloom.data.batching.stream import BatchStream
from seqloom.inference.run import load
from seqloom.runs.bundle import read_setup
from seqloom.runs.integrity import checkpoint_store, run_damage, weights_store
from seqloom.runs.weights import read_tensors
from seqloom.training import evaluation, loop
from seqloom.training.evaluation import DevScores
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from seqloom.training.session import BestScore
from seqloom.training.setup import lock_folder
from support.forking import ChildProcess, SharedInteger
from support.tiny_runs import (
    LANGUAGE_MODEL,
    NO_DROPOUT,
    TRANSFORMER,
    EventCollector,
    checkpoint_digests,
    latest_checkpoint,
    read_events,
    temporary_files,
    tiny_config,
)

pytestmark = pytest.mark.slow

Measure = Callable[..., DevScores]


def scripted(scores: list[float], key: str, higher_is_better: bool) -> Measure:
    """A replacement for `score_dev` that returns these scores one after another."""
    remaining = iter(scores)

    def measure(*_: object) -> DevScores:
        return DevScores(
            {"loss": 1.0, key: next(remaining)}, frozenset([key] if higher_is_better else [])
        )

    return measure


@pytest.mark.parametrize(("key", "sign"), [("loss", 1), ("ter", 1), ("bleu", -1)])
def test_patience_stops_training_and_the_saved_weights_are_the_best(
    key: str, sign: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = [sign * score for score in (3.0, 2.0, 2.5, 2.0, 1.0)]
    monkeypatch.setattr(evaluation, "score_dev", scripted(scores, key, sign < 0))
    config = tiny_config(
        f"training.stopping.score={key}",
        "training.stopping.patience=2",
        "training.evaluate_every=2",
    )
    summary = train(config, tmp_path / "run")
    assert (summary.reason, summary.step) == ("patience", 8)
    assert (summary.best, summary.best_step) == (scores[1], 4)
    folder = weights_store(tmp_path / "run").current()
    assert folder is not None
    assert folder.name == "step-00000004"
    best = [line["best"] for line in read_events(tmp_path / "run") if line["event"] == "evaluate"]
    assert best == [True, True, False, False]
    straight = tmp_path / "straight"
    monkeypatch.undo()
    train(tiny_config("training.steps=4", "training.evaluate_every=2"), straight)
    expected = read_tensors(latest_checkpoint(straight) / "model.safetensors")
    for name, weight in read_tensors(folder / "model.safetensors").items():
        assert torch.equal(weight, expected[name])


def test_a_resumed_run_remembers_the_best_score_and_the_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = ("training.stopping.patience=2", "training.evaluate_every=2")
    monkeypatch.setattr(evaluation, "score_dev", scripted([1.0, 2.0], "loss", False))
    assert train(tiny_config("training.steps=4", *changes), tmp_path / "run").reason == "done"
    monkeypatch.setattr(evaluation, "score_dev", scripted([1.5], "loss", False))
    summary = train(tiny_config("training.steps=12", *changes), tmp_path / "run", resume=True)
    assert (summary.reason, summary.step) == ("patience", 6)
    assert (summary.best, summary.best_step) == (1.0, 2)


def test_the_best_score_counts_evaluations_without_improvement() -> None:
    best_score = BestScore()
    waited = []
    for step, score in enumerate([5.0, 4.0, 4.0, 6.0, 3.0]):
        best_score = best_score.after(score, step, higher_is_better=False, loss=1.0)
        waited.append(best_score.waited)
    assert waited == [0, 0, 1, 2, 0]
    assert (best_score.best, best_score.best_step) == (3.0, 4)
    assert not BestScore(waited=10**6).should_stop(None)


def test_of_evaluations_with_the_same_score_the_one_with_the_lowest_loss_is_best() -> None:
    """At the start of a training, BLEU is often 0 while the loss falls."""
    best_score = BestScore()
    steps = []
    for step, (score, loss) in enumerate([(0.0, 4.0), (0.0, 3.8), (0.0, 3.9), (1.0, 5.0)]):
        best_score = best_score.after(score, step, higher_is_better=True, loss=loss)
        steps.append((best_score.best_step, best_score.waited))
    assert steps == [(0, 0), (1, 1), (1, 2), (3, 0)]


def test_the_time_limit_stops_training_after_an_evaluation_and_can_be_raised(
    tmp_path: Path,
) -> None:
    summary = train(tiny_config("training.stopping.max_minutes=1e-6"), tmp_path / "run")
    assert (summary.reason, summary.step, summary.best_step) == ("time", 1, 1)
    assert load(tmp_path / "run").translate(["ab"])
    summary = train(
        tiny_config("training.stopping.max_minutes=60.0"), tmp_path / "run", resume=True
    )
    assert (summary.reason, summary.step) == ("done", 12)


def test_the_event_log_contains_every_event_as_json(tmp_path: Path) -> None:
    watcher = EventCollector()
    config = tiny_config("training.steps=40", "training.evaluate_every=20")
    train(config, tmp_path / "run", report=watcher)
    lines = read_events(tmp_path / "run")
    assert [line["event"] for line in lines] == [
        "start", "step", "evaluate", "step", "evaluate", "end"
    ]  # fmt: skip
    start, step, evaluated, *_, end = lines
    assert start["parameters"] > 0
    assert start["corpus"]["kept"] == start["examples"] == 60
    assert step["step"] == evaluated["step"] == 20
    assert step["perplexity"] == pytest.approx(math.exp(step["loss"]))
    assert {"learning_rate", "tokens_per_second", "seconds_left"} <= set(step)
    assert {"loss", "perplexity", "bleu", "chrf2", "exact-match", "best"} <= set(evaluated)
    assert "ter" not in evaluated, "TER is slow and computed only if it decides when to stop"
    assert (end["reason"], end["step"]) == ("done", 40)
    assert lines[-2]["loss"] < 0.95 * math.log(8)
    assert {"tokenise", "start", "step", "evaluate", "checkpoint", "end"} == set(watcher.kinds())
    assert temporary_files(tmp_path / "run") == []


def test_a_finished_run_stays_intact_however_often_it_is_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(tiny_config(), folder)
    expected = checkpoint_digests(folder)
    for _ in range(12):  # more than one digit can count
        assert train(tiny_config(), folder, resume=True).reason == "done"
        assert checkpoint_digests(folder) == expected
        assert run_damage(folder) == []
    assert len(checkpoint_store(folder).paths()) == 2


def test_a_different_number_of_threads_is_noted_when_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tiny_config("training.steps=3"), tmp_path / "run")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    watcher = EventCollector()
    train(tiny_config("training.steps=6"), tmp_path / "run", resume=True, report=watcher)
    (note,) = [event.data["text"] for event in watcher.events if event.kind == "note"]
    assert "may differ in its last bits" in note
    assert "threads: 1 before, 64 now" in note
    assert re.search(r"torch: [\d.+a-z]+ before, 2\.99\.0 now", note)


def test_other_rules_for_batches_are_noted_when_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tiny_config("training.steps=3"), tmp_path / "run")
    monkeypatch.setattr("seqloom.training.checkpoint.BATCH_RULES", 10**6)
    watcher = EventCollector()
    train(tiny_config("training.steps=6"), tmp_path / "run", resume=True, report=watcher)
    (note,) = [event.data["text"] for event in watcher.events if event.kind == "note"]
    assert "forms other batches" in note
    assert "may be used twice or not at all" in note


def test_a_finished_run_can_be_extended_and_its_recipe_is_updated(tmp_path: Path) -> None:
    train(tiny_config("training.steps=24"), str(tmp_path / "straight"))
    train(tiny_config(), tmp_path / "run")
    longer = tiny_config("training.steps=24")
    assert train(longer, tmp_path / "run", resume=True).step == 24
    assert checkpoint_digests(tmp_path / "run") == checkpoint_digests(tmp_path / "straight")
    stored = load_recipe(tmp_path / "run" / "config.toml").config
    assert isinstance(stored.text.split_sentences, bool)  # resolved when training starts
    text = longer.text.model_copy(update={"split_sentences": stored.text.split_sentences})
    assert stored == longer.model_copy(update={"text": text})
    assert find_damage(tmp_path / "run") == []


def test_another_recipe_is_rejected_with_every_difference(tmp_path: Path) -> None:
    train(tiny_config(), tmp_path / "run")
    other = tiny_config("training.seed=5", "model.decoder.width=16", "training.steps=99")
    with pytest.raises(ConfigError) as caught:
        train(other, tmp_path / "run", resume=True)
    assert str(caught.value).splitlines()[1:] == [
        "  model.decoder.width: 8 in the run, 16 now",
        "  training.seed: 1 in the run, 5 now",
        "Use the original recipe (--set changes single settings), or choose another --run folder.",
    ]
    assert run_damage(tmp_path / "run") == []


def test_another_recipe_is_rejected_before_the_first_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "take_step", stop)
    with pytest.raises(KeyboardInterrupt):
        train(tiny_config(), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"training\.seed: 1 in the run, 2 now"):
        train(tiny_config("training.seed=2"), tmp_path / "run", resume=True)


def test_the_decision_to_split_sentences_is_stored_and_kept_when_resuming(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for settings, expected in (
        (["training.steps=1"], False),
        (["training.steps=2"], False),
        (["training.steps=3", "text.split_sentences=true"], True),
        (["training.steps=4"], True),
    ):
        train(tiny_config(*settings), folder, resume=folder.exists())
        assert read_setup(folder)[0].text.split_sentences is expected


def test_resume_needs_a_run_and_a_new_run_needs_an_empty_folder(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match=r"no run to resume\. Remove --resume"):
        train(tiny_config(), tmp_path / "run", resume=True)
    train(tiny_config("training.steps=1"), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"already contains a run\. Continue it with --resume"):
        train(tiny_config(), tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / ".tmp-mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name, words in (("full", "contains files, but no run"), ("file", "is a file")):
        with pytest.raises(ConfigError, match=f"{words}. Choose another --run"):
            train(tiny_config(), tmp_path / name)
    assert (tmp_path / "full" / ".tmp-mine").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_recipe_that_cannot_be_trained_creates_no_folder(tmp_path: Path) -> None:
    """Otherwise a later run would reuse a vocabulary learned from too little data."""
    (tmp_path / "two.tsv").write_text("ab\tba\nbc\tcb\n")
    corpus = f"data.train={{kind='tsv', path='{tmp_path / 'two.tsv'}'}}"
    with pytest.raises(DataError, match="holding out"):
        train(tiny_config(corpus, "data.dev={kind='hold-out'}"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_dev_line_longer_than_a_batch_is_evaluated(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text(f"{'ab' * 100}\t{'ba' * 100}\nab\tba\n")
    dev = f"data.dev={{kind='tsv', path='{tmp_path / 'dev.tsv'}'}}"
    assert train(tiny_config(dev, "training.steps=4"), tmp_path / "run").best is not None


def test_changed_training_data_is_rejected_and_moved_data_is_accepted(tmp_path: Path) -> None:
    def config(folder: Path) -> Any:
        files = [f"data.{split}={{kind='tsv', path='pairs.tsv'}}" for split in ("train", "dev")]
        return tiny_config(*files, f"data.folder={folder}", "data.test=[]", "training.steps=3")

    for name, text in (("one", "ab\tba\n"), ("two", "ab\tba\n"), ("three", "ab\tbb\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pairs.tsv").write_text(text * 20)
    train(config(tmp_path / "one"), tmp_path / "run")
    train(config(tmp_path / "two"), tmp_path / "run", resume=True)
    with pytest.raises(DataError, match="the training data has changed since"):
        train(config(tmp_path / "three"), tmp_path / "run", resume=True)


def test_only_one_process_can_train_in_a_folder(tmp_path: Path) -> None:
    held, done = SharedInteger(), SharedInteger()

    def hold() -> None:
        with lock_folder(tmp_path / "run"):
            held.set(1)
            while not done.get():
                pass

    child = ChildProcess(hold)
    while not held.get():
        pass
    with pytest.raises(StorageError, match="another process is training in this folder"):
        train(tiny_config(), tmp_path / "run")
    done.set(1)
    assert child.wait() == 0
    assert not list(tmp_path.iterdir())
    train(tiny_config("training.steps=1"), tmp_path / "run")


def test_examples_longer_than_the_model_are_rejected_before_training(tmp_path: Path) -> None:
    changes = [change.replace("max_length=24", "max_length=4") for change in TRANSFORMER]
    with pytest.raises(DataError) as caught:
        train(tiny_config(*changes), tmp_path / "run")
    for words in (
        "some lines are longer than the model's maximum length",
        "train: ",
        "set model.encoder.positions.max_length = 5",
        "data.filter.max_target_tokens = 3",
    ):
        assert words in str(caught.value)


def test_an_example_larger_than_a_batch_is_rejected_without_creating_a_folder(
    tmp_path: Path,
) -> None:
    with pytest.raises(DataError) as caught:
        train(tiny_config("training.batch_tokens=4"), tmp_path / "run")
    message = str(caught.value)
    assert re.search(r"example \d+ \(counted from 0\) has 5 tokens", message)
    assert "training.batch_tokens is 4; raise it to 5 or more" in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes",
    [
        TRANSFORMER,
        LANGUAGE_MODEL,
        ("training.decoder_input.kind=scheduled-sampling", "training.decoder_input.steps=10"),
        ("training.decoder_input.kind=free-running", "training.label_smoothing=0.1"),
        ("training.accumulate=3", "training.schedule={kind='cosine', warmup=2}"),
        ("model.decoder.embedding.noise=0.1", "training.precision=bf16"),
        ("text.tokenizer={kind='subwords', size=14}", "text.sampling={alpha=0.4, variants=2}"),
    ],
    ids=lambda changes: changes[0].split("=")[0],
)
def test_a_resumed_run_ends_bit_equal(changes: tuple[str, ...], tmp_path: Path) -> None:
    config = tiny_config(*changes)
    train(config, tmp_path / "straight")

    def stop(event: Event) -> None:
        if event.kind == "checkpoint" and event.step == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", report=stop)
    watcher = EventCollector()
    train(config, tmp_path / "run", resume=True, report=watcher)
    assert checkpoint_digests(tmp_path / "run") == checkpoint_digests(tmp_path / "straight")
    saved = [event.step for event in watcher.events if event.kind == "checkpoint"]
    assert saved == [9, 12]  # the checkpoint at step 6 exists and is not written again


def test_the_run_folder_may_be_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    summary = train(tiny_config("training.steps=1", *NO_DROPOUT), Path())
    assert summary.folder == tmp_path / "here"
    load(tmp_path / "here")


def test_a_recipe_can_be_a_file_or_a_dict(tmp_path: Path) -> None:
    config = tiny_config("training.steps=2")
    (tmp_path / "tiny.toml").write_text(format_recipe(config), encoding="utf-8")
    expected = train(config, tmp_path / "config").best
    assert train(str(tmp_path / "tiny.toml"), tmp_path / "file").best == expected
    assert train(config.model_dump(mode="json"), tmp_path / "dict").best == expected


class Garbage:
    """An object that refers to itself, so that only the garbage collector can remove it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def unfrozen() -> Iterator[None]:
    was_frozen = gc.get_freeze_count() > loop.MAX_FROZEN_AT_START
    gc.unfreeze()
    yield
    if was_frozen:
        gc.freeze()


def test_the_garbage_collector_ignores_older_objects_during_training(unfrozen: None) -> None:
    """Frozen objects that are freed meanwhile, for example by another thread, lower the count."""
    before = gc.get_freeze_count()
    with loop.frozen_objects():
        assert gc.get_freeze_count() > 10_000
        with loop.frozen_objects():
            assert gc.get_freeze_count() > 10_000
        assert gc.get_freeze_count() > 10_000, "only the outer call unfreezes objects"
    assert gc.get_freeze_count() == before


def test_garbage_from_before_training_is_removed(unfrozen: None) -> None:
    reference = weakref.ref(Garbage())
    with loop.frozen_objects():
        assert reference() is None


def test_batches_are_prepared_from_the_start_of_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []
    monkeypatch.setattr(BatchStream, "start", lambda stream: starts.append(stream.position))
    config = tiny_config("training.steps=3", "training.checkpoint_every=3")
    train(config, tmp_path / "run")
    train(tiny_config("training.steps=4"), tmp_path / "run", resume=True)
    assert starts == [(0, 0), (0, 3)], "a resumed run starts at the position of its checkpoint"
