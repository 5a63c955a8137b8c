"""Labels of vectors: training, prediction, evaluation, files of one's own, and errors."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqloom
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.checks.doctor import examine
from seqloom.inference.run import Run
from seqloom.tasks.build import learn_task

GESTURES = {"kind": "gestures", "examples": 300, "min_frames": 6, "max_frames": 12, "noise": 0.1}


def frame_config(*settings: str, pooling: str = "none", **corpus: Any) -> RunConfig:
    labels = "frame" if pooling == "none" else "sequence"
    train = {**GESTURES, "labels": labels, **corpus}
    tables = {
        "task": {"kind": "labels"},
        "data": {
            "train": train,
            "dev": {**train, "examples": 40},
            "test": {**train, "examples": 60},
        },
        "model": {
            "encoder": {"kind": "recurrent", "width": 24, "embedding": {"width": 8}},
            "decoder": {"kind": "labels", "pooling": pooling},
        },
        "training": {
            "steps": 120,
            "batch_tokens": 512,
            "evaluate_every": 60,
            "checkpoint_every": 120,
            "optimizer": {"learning_rate": 2e-2},
            "schedule": {"kind": "cosine", "warmup": 10},
        },
    }
    return load_recipe(tables, list(settings)).config


@pytest.fixture(scope="module")
def frames_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "frames"
    seqloom.train(frame_config(), folder)
    return seqloom.load(folder)


def accuracy(run: Run) -> float:
    report = run.evaluate("test")
    return next(score.value for score in report.scores if score.name == "accuracy")


@pytest.mark.slow
def test_context_labels_frames_better_than_a_frame_alone(frames_run: Run) -> None:
    """A left and a right circle and a wave look alike in a single frame: at best about a half of
    the frames can be right. The encoder reads the frames around it."""
    assert accuracy(frames_run) > 75


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["recurrent", "transformer"])
def test_one_label_per_sequence_is_learned(encoder: str, tmp_path: Path) -> None:
    settings: tuple[str, ...] = ()
    if encoder == "transformer":
        settings = (
            "model.encoder={kind='transformer', width=24, layers=1, feedforward=48, "
            "attention={heads=2}, dropout=0.0}",
            "training.optimizer.learning_rate=5e-3",
        )
    config = frame_config(*settings, pooling="mean")
    seqloom.train(config, tmp_path / "run")
    run = seqloom.load(tmp_path / "run")
    assert accuracy(run) > 60
    [labels] = run.label(["1,0 0.9,0.1 1,0.1"], every=True)
    probabilities = [math.exp(sum(each.log_probabilities)) for each in labels]
    assert probabilities == sorted(probabilities, reverse=True)
    # UNKNOWN has the rest of the probability.
    assert 0.9 < sum(probabilities) <= 1.0001


@pytest.mark.slow
def test_padding_and_batches_do_not_change_labels(frames_run: Run) -> None:
    texts = ["1,0 0.9,0.4 0.6,0.8 0.2,1", "0,0", "0.1,0 -1,0 -1,0.1 1,0 1,0.1 0,0 0,0"]
    together = frames_run.label(texts)
    for text, [expected] in zip(texts, together, strict=True):
        [[alone]] = frames_run.label([text])
        assert alone.text == expected.text
        np.testing.assert_allclose(alone.log_probabilities, expected.log_probabilities, atol=1e-5)
        assert len(alone.text.split()) == len(text.split())
        assert alone.source_pieces[:-1] == tuple(map(str, range(1, len(text.split()) + 1)))
    with pytest.raises(DataError, match=r"a frame has 3 numbers, but the model reads 2"):
        frames_run.label(["1,2,3"])


@pytest.mark.slow
def test_the_command_labels_the_sequences_of_a_csv_file(
    frames_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "cli"))
    from support.cli_runner import run_cli

    path = tmp_path / "mine.csv"
    path.write_text("sequence,x1,x2\na,1,0\na,0.9,0.4\nb,0,0\n")
    result = run_cli("label", frames_run.folder, path)
    assert result.exit_code == 0, result.stderr
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["a", "1"], ["a", "2"], ["b", "1"]]
    entry = json.loads(run_cli("label", frames_run.folder, path, "--json").stdout.splitlines()[1])
    assert entry["sequence"] == "b"
    assert [each["label"] for each in entry["labels"]] == [rows[2][2]]
    given = run_cli("label", frames_run.folder, "0,0")
    assert given.stdout.split("\t")[1] == rows[2][2]
    path.write_text("name,x1,x2\na,1,0\n")
    assert "there is no column sequence" in run_cli("label", frames_run.folder, path).error
    missing = run_cli("label", frames_run.folder, tmp_path / "none.csv")
    assert "there is no such file" in missing.error
    assert "contains" not in run_cli("label", frames_run.folder, "1,x").stdout
    assert "is not a list of numbers" in run_cli("label", frames_run.folder, "1,x").error


def test_files_of_ones_own_are_read(tmp_path: Path) -> None:
    rows = [f"{n // 5},{'up' if n % 2 else 'down'},{n % 2},{n}" for n in range(60)]
    (tmp_path / "mine.csv").write_text("sequence,label,x1,x2\n" + "\n".join(rows) + "\n")
    corpus = "{kind='frames', path='mine.csv'}"
    settings = [f"data.{split}={corpus}" for split in ("train", "dev", "test")]
    config = frame_config(f"data.folder={tmp_path}", *settings)
    task = learn_task(config)
    dataset = task.corpus(config, "train", lambda count: None)
    assert len(dataset) == 12
    batch = dataset.gather(np.arange(3))
    assert batch.source is not None
    assert batch.source.values.shape == (3, 6, 2)  # five frames, and zeros in the place of END
    assert batch.targets.values.shape == (3, 6)
    assert not examine(config).has_errors


def test_labels_must_fit_the_decoder() -> None:
    for pooling, labels, message in (
        ("none", "sequence", r"each frame needs one label; set labels = 'frame'"),
        ("last", "frame", r"each sequence needs one label; set labels = 'sequence'"),
    ):
        config = frame_config(pooling=pooling, labels=labels)
        with pytest.raises(DataError, match=message):
            learn_task(config).corpus(config, "train", lambda count: None)
        assert examine(config).has_errors


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "data.dev={kind='tsv', path='x.tsv'}",
            r"data.dev: 'tsv' has text as sources, and the first corpus of data.train has frames",
        ),
        ("training.batching=bucketed", r"vectors cannot be packed or bucketed; use 'padded'"),
        ("training.loop=captured", r"steps on vectors have many shapes"),
        ("task.scores=['sari']", r"'sari' compares texts"),
        (
            "task={kind='translation'}",
            r"'translation' cannot use 'gestures', which has frames as sources; .* = 'labels'",
        ),
    ],
)
def test_settings_that_do_not_apply_to_frames_are_an_error(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        frame_config(setting)
