"""The bundled captioning and forecasting recipes on small data."""

import gzip
import io
import json
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import seqloom
from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow

SMALL = (
    "training.steps=6",
    "training.schedule.warmup=2",
    "training.batch_tokens=256",
    "training.evaluate_every=3",
    "training.checkpoint_every=6",
)
WITH_TRANSFORMER = [
    "model.encoder.channels=[8, 8, 8]",
    "model.encoder.blocks=1",
    "model.encoder.width=16",
    "model.decoder.layers=1",
    "model.decoder.width=16",
    "model.decoder.feedforward=16",
]
CAPTIONING = {
    "flickr8k": WITH_TRANSFORMER,
    "flickr8k-risk": [*WITH_TRANSFORMER, "training.minimum_risk.after=4"],
    "flickr8k-attention": [
        "model.encoder.channels=[8, 8, 8]",
        "model.encoder.blocks=1",
        "model.encoder.width=16",
        "model.decoder.width=16",
        "model.decoder.embedding.width=16",
    ],
    "flickr8k-patches": [
        *(
            f"model.{side}.{change}"
            for side in ("encoder", "decoder")
            for change in ("layers=1", "width=16", "feedforward=16")
        )
    ],
}
LOADS = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL")


def settings(*changes: str) -> list[str]:
    return set_options(*SMALL, *changes)


def write_photos(folder: Path) -> None:
    """Write twelve images of one colour with five captions each, in the format of Flickr8k."""
    generator = random.Random(1)
    names = {"train": range(8), "dev": range(8, 10), "test": range(10, 12)}
    archives = {
        "train": ["images-train-0.zip", "images-train-1.zip", "images-train-2.zip"],
        "dev": ["images-dev.zip"],
        "test": ["images-test.zip"],
    }
    captions = []
    for split, numbers in names.items():
        opened = [zipfile.ZipFile(folder / name, "w") for name in archives[split]]
        for number in numbers:
            shade = generator.choice(["red", "blue"])
            image = Image.new("RGB", (100, 84), shade)
            buffer = io.BytesIO()
            image.save(buffer, "JPEG")
            opened[number % len(opened)].writestr(f"{number}.jpg", buffer.getvalue())
            captions += [f"{number}.jpg#{k}\tThe {shade} wall number {k} ." for k in range(5)]
        for archive in opened:
            archive.close()
        listed = "".join(f"{number}.jpg\n" for number in numbers)
        (folder / f"Flickr_8k.{split}Images.txt").write_text(listed)
    (folder / "Flickr8k.token.txt.gz").write_bytes(gzip.compress("\n".join(captions).encode()))


@pytest.mark.parametrize("name", CAPTIONING)
def test_captioning_recipe_trains_evaluates_and_captions_after_a_move(
    name: str, tmp_path: Path
) -> None:
    write_photos(tmp_path)
    options = settings(
        f"data.folder={tmp_path}",
        "text.tokenizer={kind='words'}",
        "training.evaluate_examples=2",
        "decoding.max_length=6",  # the figure has an image for each token
        *CAPTIONING[name],
    )
    result = run_cli("doctor", name, "--json", *options)
    assert json.loads(result.stdout)["memory_bytes"]["activations"] > 0, result.stderr
    result = run_cli("train", name, "--run", tmp_path / "made", *options)
    assert result.exit_code == 0, result.stderr
    run = (tmp_path / "made").rename(tmp_path / "moved")
    result = run_cli("evaluate", run, "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["sentences"] == 2
    assert {"BLEU-1", "BLEU-4"} <= {score["name"] for score in report["scores"]}
    photo = tmp_path / "images-test.zip" / "10.jpg"
    result = run_cli("caption", run, photo, "--show", tmp_path / "attention.svg")
    assert result.exit_code == 0, result.stderr
    [expected] = seqloom.load(run).caption([photo])
    assert result.stdout.strip() == expected.text
    assert (tmp_path / "attention.svg").read_text().startswith("<svg")
    result = run_cli("search", run, photo, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["outputs"][0]["text"] == expected.text


def write_recordings(folder: Path) -> None:
    """Write the paths of two people in every file of the scene "eth"."""
    lines = [
        f"{10.0 * frame}\t{walker}\t{0.4 * frame + walker}\t{0.1 * frame * walker}"
        for frame in range(40)
        for walker in (1.0, 2.0)
    ]
    splits = {
        scene: {"train": ["a_train.txt"], "val": ["a_val.txt"], "test": [f"{scene}.txt"]}
        for scene in ("eth", "hotel")
    }
    (folder / "splits.json").write_text(json.dumps(splits))
    for place in ("train/a_train", "val/a_val", "all_data/eth", "all_data/hotel"):
        path = folder / f"{place}.txt.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress("\n".join(lines).encode()))


def write_temperatures(folder: Path) -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(14_400, 7)).cumsum(0)
    lines = [",".join(["date", *LOADS, "OT"])]
    lines += [",".join(["when", *(f"{value:.3f}" for value in row)]) for row in rows]
    (folder / "ETTh1.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def observed_path(folder: Path) -> Path:
    path = folder / "walk.csv"
    path.write_text("x,y\n" + "".join(f"{0.5 * n},{n}\n" for n in range(8)))
    return path


def observed_temperatures(folder: Path) -> Path:
    path = folder / "now.csv"
    rows = [",".join(["1.0"] * 6 + ["" if n >= 96 else f"{n}"]) for n in range(96 + 24)]
    path.write_text("\n".join([",".join([*LOADS, "OT"]), *rows]) + "\n")
    return path


FORECASTING = {
    "eth-ucy": (write_recordings, observed_path, ["data.test.scene=hotel"], (12, 2)),
    "etth1": (
        write_temperatures,
        observed_temperatures,
        [f"data.{split}.stride=200" for split in ("train", "dev", "test")],
        (24, 1),
    ),
}
CONTEXT = [f"data.{split}.context={json.dumps(LOADS)}" for split in ("train", "dev", "test")]
"""Settings that give the loads as context."""


@pytest.mark.parametrize(
    ("name", "context"), [*((name, []) for name in FORECASTING), ("etth1", CONTEXT)]
)
def test_forecasting_recipe_trains_evaluates_and_forecasts_after_a_move(
    name: str, context: list[str], tmp_path: Path
) -> None:
    write, observe, changes, shape = FORECASTING[name]
    write(tmp_path)
    options = settings(
        f"data.folder={tmp_path}",
        "model.encoder.width=8",
        f"model.decoder.width={8 if name == 'eth-ucy' else 16}",
        *changes,
        *context,
    )
    result = run_cli("train", name, "--run", tmp_path / "made", *options)
    assert result.exit_code == 0, result.stderr
    run = (tmp_path / "made").rename(tmp_path / "moved")
    result = run_cli("evaluate", run, "--json")
    assert result.exit_code == 0, result.stderr
    assert set(json.loads(result.stdout)["baselines"]) == {"last value", "straight line"}
    path = observe(tmp_path)
    result = run_cli("forecast", run, path, "--json")
    assert result.exit_code == 0, result.stderr
    rows = seqloom.load_forecaster(run).forecast_file(path)
    assert rows.shape == shape
    printed = np.array([list(row.values()) for row in json.loads(result.stdout)])
    np.testing.assert_allclose(printed, rows, rtol=1e-5)


@pytest.mark.parametrize("name", [*CAPTIONING, *FORECASTING])
def test_doctor_names_the_folder_of_missing_data(name: str, tmp_path: Path) -> None:
    result = run_cli("doctor", name, "--set", f"data.folder={tmp_path}")
    assert result.exit_code == 66
    assert str(tmp_path) in result.stderr + result.stdout
    assert "data.folder" in result.stderr + result.stdout
