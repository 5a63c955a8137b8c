"""Fine-tuning starts exactly where its parent ended, and resumes like any other training."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from fine_tuned_runs import COPY, FEW_STEPS, copy_recipe, train_parent

import seqloom
from seqloom.core.errors import ConfigError, NotFoundError, StorageError, TrainingError
from seqloom.data.corpus.dataset import Dataset
from seqloom.runs.integrity import checkpoint_store, run_damage, weights_store
from seqloom.runs.recipe import load_recipe
from seqloom.runs.weights import read_tensors
from seqloom.training import evaluation, loop
from seqloom.training.fine_tuning import start
from seqloom.training.loop import Summary
from seqloom.training.session import Session
from support.tiny_runs import (
    LETTERS,
    TRANSFORMER,
    EventCollector,
    checkpoint_digests,
    read_events,
    tiny_config,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_parent(tmp_path_factory.mktemp("parent") / "run")


@pytest.fixture(scope="module")
def child(parent: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Summary, EventCollector]:
    """A fine-tuning of the parent: its summary and its events."""
    watcher = EventCollector()
    folder = tmp_path_factory.mktemp("child") / "run"
    recipe = copy_recipe()
    summary = seqloom.fine_tune(recipe, parent, folder, settings=FEW_STEPS, report=watcher)
    return summary, watcher


def evaluations(folder: Path) -> list[dict[str, Any]]:
    """The evaluation events without their times."""
    events = [event for event in read_events(folder) if event["event"] == "evaluate"]
    return [{key: value for key, value in event.items() if key != "time"} for event in events]


def best_weights(folder: Path) -> dict[str, torch.Tensor]:
    path = weights_store(folder).current()
    assert path is not None
    return read_tensors(path / "model.safetensors")


def test_the_first_evaluation_has_exactly_the_score_of_the_parent(
    parent: Path, child: tuple[Summary, EventCollector]
) -> None:
    (best,) = [event for event in evaluations(parent) if event["best"]][-1:]
    first = evaluations(child[0].folder)[0]
    scores = {key: value for key, value in best.items() if isinstance(value, float)}
    assert first["step"] == 0
    assert first["general"] == scores


def test_the_general_score_is_in_every_evaluation_and_in_the_summary(
    child: tuple[Summary, EventCollector],
) -> None:
    summary, watcher = child
    events = {event["step"]: event for event in evaluations(summary.folder)}
    assert [*events] == [0, 3, 6]
    assert summary.general_before == events[0]["general"]
    assert summary.general_best == events[summary.best_step]["general"]
    notes = [event.data["text"] for event in watcher.events if event.kind == "note"]
    assert any("also scores the dev split of the parent" in note for note in notes)


def test_the_general_set_does_not_change_training(
    parent: Path, child: tuple[Summary, EventCollector], tmp_path: Path
) -> None:
    recipe = copy_recipe(general={**LETTERS, "examples": 3})
    folders = (child[0].folder, tmp_path / "run")
    seqloom.fine_tune(recipe, parent, tmp_path / "run", settings=FEW_STEPS)
    assert checkpoint_digests(folders[0]) == checkpoint_digests(folders[1])
    losses = [evaluations(folder)[0]["general"]["loss"] for folder in folders]
    assert losses[0] != losses[1]


def test_a_non_finite_loss_on_the_general_set_names_this_set(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_loss = evaluation.dataset_loss

    def broken_loss(session: Session, dataset: Dataset, *others: Any) -> tuple[float, int]:
        total, count = dataset_loss(session, dataset, *others)
        assert session.general is not None
        return (float("nan") if dataset is session.general.dataset else total), count

    monkeypatch.setattr(evaluation, "dataset_loss", broken_loss)
    with pytest.raises(TrainingError, match="the loss on the general dev set is nan"):
        seqloom.fine_tune(copy_recipe(), parent, tmp_path / "run", settings=FEW_STEPS)


def test_missing_files_of_the_parents_dev_split_are_noted(tmp_path: Path) -> None:
    pairs = "".join(f"{word}\t{word[::-1]}\n" for word in ("abc", "bca", "cab", "abd") * 5)
    (tmp_path / "dev.tsv").write_text(pairs, encoding="utf-8")
    train_parent(tmp_path / "parent", f"data.dev={{kind='tsv', path='{tmp_path}/dev.tsv'}}")
    (tmp_path / "dev.tsv").unlink()
    watcher = EventCollector()
    summary = seqloom.fine_tune(
        copy_recipe(), tmp_path / "parent", tmp_path / "run", settings=FEW_STEPS, report=watcher
    )
    assert not summary.general_before
    notes = [event.data["text"] for event in watcher.events if event.kind == "note"]
    assert any("dev.tsv" in note and "data.parent.folder" in note for note in notes)


def test_fine_tuning_improves_the_score_on_the_new_data(tmp_path: Path) -> None:
    longer = ("training.steps=60", "training.evaluate_every=60", "training.checkpoint_every=60")
    folder = train_parent(tmp_path / "parent", *longer)
    settings = ["training.steps=80", "training.optimizer.learning_rate=0.01"]
    settings += ["training.evaluate_every=80", "training.checkpoint_every=80"]
    seqloom.fine_tune(copy_recipe(), folder, tmp_path / "run", settings=settings)
    before, after = (event["loss"] for event in evaluations(tmp_path / "run"))
    assert after < 0.9 * before


def test_resumed_and_uninterrupted_fine_tuning_are_equal(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent is not needed once the first checkpoint exists."""
    moved = Path(shutil.copytree(parent, tmp_path / "moved"))
    settings = [*FEW_STEPS, "training.averaging.kind=ema", "training.freeze=['embeddings']"]
    seqloom.fine_tune(copy_recipe(), moved, tmp_path / "straight", settings=settings)
    step = loop.take_step

    def interrupted_step(session: Any) -> Any:
        if session.step == 3:
            raise InterruptedError
        return step(session)

    monkeypatch.setattr(loop, "take_step", interrupted_step)
    with pytest.raises(InterruptedError):
        seqloom.fine_tune(copy_recipe(), moved, tmp_path / "run", settings=settings)
    monkeypatch.undo()
    shutil.rmtree(moved)
    seqloom.train(tmp_path / "run", tmp_path / "run", resume=True)
    assert checkpoint_digests(tmp_path / "run") == checkpoint_digests(tmp_path / "straight")
    assert evaluations(tmp_path / "run") == evaluations(tmp_path / "straight")
    assert run_damage(tmp_path / "run") == []


def test_a_run_without_a_checkpoint_resumes_only_from_the_same_weights(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(parent, tmp_path / "parent"))
    monkeypatch.setattr(loop, "evaluate", lambda *_: (_ for _ in ()).throw(InterruptedError))
    with pytest.raises(InterruptedError):
        seqloom.fine_tune(copy_recipe(), moved, tmp_path / "run", settings=FEW_STEPS)
    monkeypatch.undo()
    assert not checkpoint_store(tmp_path / "run").paths()
    shutil.rmtree(moved)
    train_parent(moved, "training.seed=7")
    with pytest.raises(StorageError, match="have changed since this run was started"):
        seqloom.train(tmp_path / "run", tmp_path / "run", resume=True)
    shutil.rmtree(moved)
    shutil.copytree(parent, moved)
    assert seqloom.train(tmp_path / "run", tmp_path / "run", resume=True).step == 6


def test_a_continued_optimiser_starts_from_the_state_of_the_parent(
    parent: Path, tmp_path: Path
) -> None:
    for name in ("fresh", "continued"):
        settings = [*FEW_STEPS, f"training.start.optimizer={name}", "training.steps=3"]
        seqloom.fine_tune(copy_recipe(), parent, tmp_path / name, settings=settings)
    path = checkpoint_store(tmp_path / "continued").current()
    assert path is not None
    state = read_tensors(path / start.OPTIMIZER)
    assert int(state["decoder.readout.output.bias:step"]) == 6 + 3
    assert checkpoint_digests(tmp_path / "fresh") != checkpoint_digests(tmp_path / "continued")


def test_a_continued_optimiser_needs_a_checkpoint(parent: Path, tmp_path: Path) -> None:
    bare = Path(shutil.copytree(parent, tmp_path / "bare"))
    shutil.rmtree(bare / "checkpoints")
    (bare / "latest").unlink()
    with pytest.raises(NotFoundError, match=r"remove training\.start\.optimizer"):
        seqloom.fine_tune(
            copy_recipe(),
            bare,
            tmp_path / "run",
            settings=[*FEW_STEPS, "training.start.optimizer=continued"],
        )


def test_every_setting_that_differs_from_the_parent_is_listed(parent: Path) -> None:
    recipe = {
        **copy_recipe(),
        "model": {"encoder": {"width": 16, "dropout": 0.3}, "decoder": {"kind": "transformer"}},
        "text": {"lowercase": True},
    }
    with pytest.raises(ConfigError) as caught:
        load_recipe(recipe, parent=parent)
    assert str(caught.value).splitlines()[1:] == [
        "  text.lowercase: false in the parent, true in the recipe",
        '  model.decoder.kind: "recurrent" in the parent, "transformer" in the recipe',
        "  model.encoder.width: 8 in the parent, 16 in the recipe",
        "Remove them from the recipe, or train without --from.",
    ]


def test_settings_that_keep_the_weights_valid_may_differ(parent: Path) -> None:
    settings = ["model.encoder.dropout=0.5", "task.scores=['exact-match']"]
    config = load_recipe(copy_recipe(), settings, parent=parent).config
    assert config.model.encoder.model_dump()["dropout"] == 0.5
    full = {**copy_recipe(), "text": {"tokenizer": {"kind": "characters"}}}
    text = tiny_config("text.split_sentences=false").text  # the parent stores the resolved value
    assert load_recipe(full, parent=parent).config.text == text


def test_the_recipe_can_name_the_parent_itself(parent: Path) -> None:
    recipe = {**copy_recipe(), "training": {"start": {"run": str(parent)}, "steps": 5}}
    assert load_recipe(recipe).config.training.steps == 5
    assert (
        load_recipe(recipe).config
        == load_recipe(copy_recipe(), ["training.steps=5"], parent=parent).config
    )


def test_a_preset_or_a_missing_parent_is_an_error(parent: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="remove preset"):
        load_recipe({**copy_recipe(), "preset": "tiny"}, parent=parent)
    with pytest.raises(ConfigError, match="remove preset"):
        load_recipe(copy_recipe(), ["preset=tiny"], parent=parent)
    with pytest.raises(NotFoundError, match="no such run"):
        load_recipe(copy_recipe(), parent=tmp_path / "nowhere")


def test_another_model_than_that_of_the_parent_is_an_error_that_says_what_to_do(
    parent: Path, tmp_path: Path
) -> None:
    config = load_recipe(copy_recipe(), FEW_STEPS, parent=parent).config
    decoder = config.model.decoder.model_copy(update={"width": 9})
    model = config.model.model_copy(update={"decoder": decoder})
    with pytest.raises(StorageError, match=r"(?s)expected \(9.*\nRemove \[model\] from the recipe"):
        seqloom.train(config.model_copy(update={"model": model}), tmp_path / "run")


def test_training_settings_are_derived_from_the_parent_and_the_data(parent: Path) -> None:
    resolved = load_recipe(copy_recipe(), parent=parent)
    training = resolved.config.training
    assert training.steps == 6
    assert training.optimizer.learning_rate == pytest.approx(0.01)
    assert training.schedule.kind == "cosine"
    (note,) = resolved.notes
    assert "training.steps = 6" in note
    assert "40 training pairs" in note
    given = load_recipe(copy_recipe(), ["training.steps=3"], parent=parent)
    assert "training.steps" not in given.notes[0]
    assert given.origins["training.steps"] == "--set"
    assert given.origins["model.encoder.width"] == "parent"
    assert given.origins["data.train.examples"] == "recipe"


@pytest.mark.parametrize("pairs", [10, 1_000, 30_000, 10**6])
def test_fewer_pairs_never_mean_more_steps(pairs: int) -> None:
    from seqloom.config.loading.fine_tuning import MIN_STEPS, ParentRun, derive_training

    parent = ParentRun("p", tiny_config("training.steps=8000"), 30_000)
    steps = derive_training(parent, pairs, None)["steps"]
    assert MIN_STEPS <= steps <= 8_000
    assert steps <= derive_training(parent, 2 * pairs, None)["steps"]


@pytest.mark.parametrize(
    ("pairs", "share"), [(10, 0.2), (3_000, 0.2), (6_000, 0.4), (15_000, 1), (10**6, 1), (None, 1)]
)
def test_few_pairs_get_a_lower_learning_rate(pairs: int | None, share: float) -> None:
    from seqloom.config.loading.fine_tuning import ParentRun, derive_training

    parent = ParentRun("p", tiny_config("training.steps=8000"), 30_000)
    before = parent.config.training.optimizer.learning_rate
    rate = derive_training(parent, pairs, None)["optimizer"]["learning_rate"]
    assert rate == pytest.approx(share * before)


def test_an_imported_model_is_fine_tuned_for_five_epochs_at_a_low_rate() -> None:
    from seqloom.config.loading.fine_tuning import (
        IMPORTED_RATE,
        MIN_STEPS,
        ParentRun,
        derive_training,
    )
    from seqloom.config.schema.corpora import ImportedConfig

    config = tiny_config("training.steps=1", "training.batch_tokens=4096")
    data = config.data.model_copy(update={"train": (ImportedConfig(),)})
    parent = ParentRun("opus", config.model_copy(update={"data": data}), None)
    derived = derive_training(parent, 1_000_000, None)
    assert derived["steps"] == round(5 * 1_000_000 * 30 / 4096)
    assert derived["optimizer"]["learning_rate"] == IMPORTED_RATE
    assert derive_training(parent, 500, None)["steps"] == MIN_STEPS


def test_a_transformer_can_be_fine_tuned_and_fine_tuned_again(tmp_path: Path) -> None:
    folder = train_parent(tmp_path / "parent", *TRANSFORMER)
    for name in ("child", "grandchild"):
        seqloom.fine_tune(copy_recipe(), folder, tmp_path / name, settings=FEW_STEPS)
        folder = tmp_path / name
    assert seqloom.load(folder).translate(["ab"])
    parent_data = seqloom.load(folder).config.data.parent
    assert parent_data is not None
    assert parent_data.train[0].kind == COPY["kind"]


def test_the_recipe_of_another_fine_tuning_is_rejected_if_its_parent_had_other_data(
    parent: Path, child: tuple[Summary, EventCollector], tmp_path: Path
) -> None:
    recipe = child[0].folder / "config.toml"
    assert load_recipe(recipe, parent=parent).config.data.parent is not None
    other = train_parent(tmp_path / "other", "data.train.examples=30")
    with pytest.raises(ConfigError, match=r"Remove data\.parent"):
        load_recipe(recipe, parent=other)
