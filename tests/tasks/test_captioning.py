"""Captioning: an image in, a sentence out, from generated images that can be named exactly."""

import io
import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import seqloom
import tiny_runs
from seqloom.analysis.explain.explainer import explain
from seqloom.analysis.gradients import trace_gradients
from seqloom.cli.main import app
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import CaptionsConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.batch import Images
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.data.batching.bucketing import BucketLayout
from seqloom.data.readers.captions import read_captions
from seqloom.data.readers.images import image_names, read_pixels
from seqloom.decoding.fast import compiled
from seqloom.metrics.bleu import bleu_1_with_punctuation, bleu_by_order
from seqloom.models.build import build_model
from seqloom.nn.convolution import Crop
from seqloom.runs.run import Run
from seqloom.tasks.build import learn_task
from seqloom.viz.caption_attention import attention_brightness

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 60), "blue": (40, 60, 220)}
SIDES = ("left", "right")
SIZE = 16


def picture(colour: str, side: str) -> bytes:
    """A square of one colour, on one side of a grey image that is wider than high."""
    image = Image.new("RGB", (24, 20), (128, 128, 128))
    image.paste(COLOURS[colour], (4, 5, 11, 16) if side == "left" else (13, 5, 20, 16))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


NAMES = [(colour, side) for colour in COLOURS for side in SIDES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six kinds of images in a zip file, with two captions each, and a list of half of them."""
    place = tmp_path_factory.mktemp("photos")
    with zipfile.ZipFile(place / "images.zip", "w") as archive:
        for colour, side in NAMES:
            archive.writestr(f"{colour}-{side}.png", picture(colour, side))
    lines = [
        f"{colour}-{side}.png#{number}\t{words}"
        for colour, side in NAMES
        for number, words in enumerate(
            [f"A {colour} square on the {side} .", f"On the {side} , a {colour} square ."]
        )
    ]
    (place / "captions.txt").write_text("\n".join(lines) + "\n")
    (place / "some.txt").write_text("red-left.png\nblue-right.png\n")
    return place


def recipe(folder: Path, *settings: str) -> RunConfig:
    captions = {"kind": "captions", "images": "images.zip", "captions": "captions.txt"}
    tables = {
        "task": {"kind": "captioning", "size": SIZE, "margin": 4},
        "data": {
            "folder": str(folder),
            "merge_references": True,
            **dict.fromkeys(("train", "dev", "test"), captions),
        },
        "text": {"tokenizer": {"kind": "words"}, "lowercase": True},
        "model": {
            "encoder": {"kind": "convolution", "width": 32, "channels": [16, 32], "blocks": 1},
            "decoder": {
                "kind": "recurrent",
                "width": 32,
                "initial_state": "mlp",
                "attention": {"projection": "linear"},
            },
        },
        "training": {
            "steps": 60,
            "batch_tokens": 256,
            "evaluate_every": 60,
            "checkpoint_every": 60,
            "optimizer": {"learning_rate": 1e-2},
            "schedule": {"kind": "constant", "warmup": 5},
        },
        "decoding": {"kind": "greedy"},
    }
    return load_recipe(tables, list(settings)).config


PATCHES = (
    "model.encoder={kind='patches', patch_size=4, width=32, layers=1, feedforward=64, "
    "attention={heads=2}, dropout=0.0}"
)
TRANSFORMER = (
    "model.decoder={kind='transformer', width=32, layers=1, feedforward=64, "
    "attention={heads=2}, dropout=0.0}"
)


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Trained, moved elsewhere, and loaded from there."""
    place = tmp_path_factory.mktemp("runs")
    # Which side it is survives no mirror: colours are what these images can teach.
    seqloom.train(recipe(folder), place / "first")
    shutil.move(place / "first", place / "moved")
    return seqloom.load(place / "moved")


def test_colours_are_named(run: Run, folder: Path) -> None:
    for colour, side in NAMES:
        [said] = run.caption([f"{folder}/images.zip/{colour}-{side}.png"])
        assert colour in said.text
        assert not any(other in said.text for other in COLOURS if other != colour)


def test_a_caption_does_not_depend_on_the_images_beside_it(run: Run, folder: Path) -> None:
    places = [f"{folder}/images.zip/{colour}-{side}.png" for colour, side in NAMES]
    together = run.caption(places)
    alone = [run.caption([place])[0] for place in places]
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_a_compiled_search_says_the_same_of_an_image(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(compiled.INDUCTOR_SETTINGS, "max_autotune", False)  # to be quick
    quick = seqloom.load(run.folder, engine="compiled")
    for colour, side in NAMES:
        image = f"{folder}/images.zip/{colour}-{side}.png"
        [one], [other] = quick.caption([image]), run.caption([image])
        assert one.attention is None
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_each_word_looks_at_cells_of_the_grid(run: Run, folder: Path) -> None:
    [said] = run.caption([f"{folder}/images.zip/red-left.png"])
    assert said.attention is not None
    assert said.attention.shape == (len(said.pieces), 16)  # 16 pixels halved twice: 4 x 4
    torch.testing.assert_close(said.attention.sum(1), torch.ones(len(said.pieces)))


def test_a_step_is_explained_by_the_cells_it_looked_at(run: Run, folder: Path) -> None:
    image = str(folder / "images.zip" / "red-left.png")
    told = explain(run, image, step=2)
    expected = run.caption([image])[0].attention
    assert expected is not None
    weights = told.find("weights")
    torch.testing.assert_close(weights.values, expected[1])
    assert weights.labels[:2] == ("cell 1", "cell 2")
    with pytest.raises(ConfigError, match="there are no steps to go back through"):
        trace_gradients(run, image)


def test_all_captions_of_an_image_are_references(run: Run) -> None:
    report = run.evaluate("test")
    assert report.sentences == len(NAMES)
    assert {len(example.references) for example in report.examples} == {2}
    scores = {score.name: score.value for score in report.scores}
    assert scores["BLEU-1"] > 60
    assert scores["BLEU-1"] >= scores["BLEU-4"]


def test_the_command_prints_captions_and_draws_looks(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "dog.png").write_bytes(picture("green", "left"))
    looks = tmp_path / "looks.png"
    command = ["caption", str(run.folder), str(tmp_path / "dog.png"), "--show", str(looks)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "green" in result.stdout
    with Image.open(looks) as drawn:
        assert drawn.width > 100


@pytest.mark.parametrize(
    "settings",
    [
        (PATCHES, TRANSFORMER),
        (PATCHES,),
        (TRANSFORMER,),
        ("model.decoder.attention={kind='none'}",),
    ],
    ids=["patches and Transformer", "patches and GRU", "convolution and Transformer", "summary"],
)
def test_every_pair_of_encoder_and_decoder_learns(
    settings: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    losses: list[float] = []

    def watch(event: object) -> None:
        data = getattr(event, "data", {})
        if "perplexity" in data:
            losses.append(data["loss"])

    seqloom.train(
        recipe(folder, *settings, "training.steps=30", "training.evaluate_every=10"),
        tmp_path / "run",
        report=watch,
    )
    assert losses[-1] < losses[0] * 0.8


def test_rows_behind_the_last_image_add_nothing(folder: Path) -> None:
    """Recorded steps need batches of one shape, so there are black images behind the real ones."""
    config = recipe(folder)
    task = learn_task(config)
    corpus = task.corpus(config, "train", lambda count: None)
    torch.manual_seed(1)
    model = build_model(config.model, task.signature).eval()
    rows = np.arange(len(NAMES))
    plain, bucketed = corpus.gather(rows), BucketLayout(256).gather(corpus, rows)
    assert bucketed.size > plain.size
    with torch.inference_mode():
        losses = [float(task.loss(model, batch)) for batch in (plain, bucketed)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def in_zip(place: Path) -> Path:
    with zipfile.ZipFile(place / "a.zip", "w") as archive:
        archive.writestr("deep/one.png", picture("red", "left"))
    return place / "a.zip"


def in_tar(place: Path) -> Path:
    with tarfile.open(place / "a.tar.gz", "w:gz") as archive:
        content = picture("red", "left")
        entry = tarfile.TarInfo("deep/one.png")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return place / "a.tar.gz"


def in_folder(place: Path) -> Path:
    (place / "deep").mkdir()
    (place / "deep" / "one.png").write_bytes(picture("red", "left"))
    return place


@pytest.mark.parametrize("pack", [in_zip, in_tar, in_folder])
def test_folders_zip_and_tar_hold_the_same_images(pack: object, tmp_path: Path) -> None:
    place = pack(tmp_path)  # type: ignore[operator]
    assert list(image_names(place)) == ["deep/one.png"]
    pixels = read_pixels(f"{place}/deep/one.png", 20)
    assert pixels.shape == (3, 20, 20)
    assert tuple(pixels[:, 10, 5]) == COLOURS["red"]


def test_the_middle_square_is_kept(tmp_path: Path) -> None:
    wide = Image.new("RGB", (30, 10), (0, 0, 0))
    wide.paste((255, 255, 255), (10, 0, 20, 10))
    wide.save(tmp_path / "wide.png")
    assert read_pixels(str(tmp_path / "wide.png"), 10).min() == 255


def test_training_crops_are_squares_of_the_image_perhaps_mirrored() -> None:
    image = torch.arange(36, dtype=torch.uint8).view(1, 1, 6, 6).expand(64, 3, 6, 6)
    crop = Crop(4)
    crop.mean.zero_()
    crop.deviation.fill_(1)
    seen = {tuple((one[0] * 255).round().int().flatten().tolist()) for one in crop(image)}
    possible = set()
    for top in range(3):
        for left in range(3):
            square = image[0, 0, top : top + 4, left : left + 4]
            possible |= {
                tuple(square.int().flatten().tolist()),
                tuple(square.flip(1).int().flatten().tolist()),
            }
    assert seen <= possible
    assert len(seen) > 6
    middle = crop.eval()(image[:1])[0, 0]
    torch.testing.assert_close((middle * 255).round(), image[0, 0, 1:5, 1:5].float())


def plain_crop(size: int, zoom: float = 1.0, light: float = 0.0) -> Crop:
    """Bytes come out as they went in, over 255."""
    crop = Crop(size, zoom, light)
    crop.mean.zero_()
    crop.deviation.fill_(1)
    return crop


def test_a_zoomed_image_is_a_part_of_it_and_never_the_same_twice() -> None:
    """A ramp stays a ramp, turned around if mirrored; the less of it is seen, the flatter it is."""
    ramp = torch.arange(0, 240, 10, dtype=torch.uint8).view(1, 1, 1, 24).expand(64, 3, 24, 24)
    seen = plain_crop(12, zoom=0.5)(ramp)[:, 0] * 255  # (64, 12, 12)
    torch.testing.assert_close(seen, seen[:, :1].expand_as(seen))  # all rows alike
    steps = seen[:, 0].diff(dim=1)[:, 1:-1]
    rising, falling = (steps >= -1e-3).all(1), (steps <= 1e-3).all(1)
    assert (rising | falling).all()
    assert rising.any()
    assert falling.any()
    steep = steps.abs().mean(1)
    assert steep.max() <= 20.1  # the whole of it, half as many pixels
    assert steep.min() >= 9.9  # half of it, pixel by pixel
    assert steep.std() > 1
    torch.testing.assert_close(
        plain_crop(12, zoom=0.5).eval()(ramp[:1]), plain_crop(12).eval()(ramp[:1])
    )


def test_light_changes_brightness_and_contrast_alone() -> None:
    image = torch.tensor([100, 140], dtype=torch.uint8).view(1, 1, 1, 2).expand(256, 3, 2, 2)
    lit_images = plain_crop(2, light=0.2)(image)[:, 0, 0] * 255  # (256, 2)
    mean, contrast = lit_images.mean(1), lit_images.diff(dim=1).abs().squeeze(1)
    assert mean.min() >= 120 * 0.8 - 1e-3
    assert mean.max() <= 120 * 1.2 + 1e-3
    assert contrast.min() >= 40 * 0.8 - 1e-3
    assert contrast.max() <= 40 * 1.2 + 1e-3
    assert mean.std() > 5
    assert contrast.std() > 1


def test_the_most_looked_at_cell_is_brightest() -> None:
    brightness = attention_brightness([0.1, 0.2, 0.6, 0.1], 4)
    assert brightness[3, 0] == 1
    assert brightness[0, 0] < brightness[0, 3] < 1


def test_captions_are_scored_without_case_and_punctuation() -> None:
    [one, *_] = bleu_by_order(["A dog , runs"], [["a dog runs ."]])
    assert one.value == pytest.approx(100)


def test_where_punctuation_counts_every_mark_is_a_word() -> None:
    output, reference = "A dog runs.", "a cat runs ."
    [without, *_] = bleu_by_order([output], [[reference]])
    assert without.value == pytest.approx(100 * 2 / 3)
    assert bleu_1_with_punctuation([output], [[reference]]).value == pytest.approx(100 * 3 / 4)


def captions(folder: Path, **changes: object) -> list[str]:
    settings = {"images": "images.zip", "captions": "captions.txt", **changes}
    config = CaptionsConfig.model_validate(settings)
    return [example.source for example in read_captions(config, str(folder))]


def test_a_list_of_names_chooses(folder: Path) -> None:
    found = captions(folder, names="some.txt")
    assert {Path(place).name for place in found} == {"red-left.png", "blue-right.png"}
    assert len(found) == 4


@pytest.fixture
def broken(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "copy")
    return tmp_path / "copy"


def test_what_is_wrong_with_captions_is_said(broken: Path) -> None:
    (broken / "some.txt").write_text("red-left.png\nno-such.png\n")
    with pytest.raises(DataError, match=r"no caption for 1 of some.txt: no-such.png"):
        captions(broken, names="some.txt")
    with (broken / "captions.txt").open("a") as file:
        file.write("elsewhere.png#0\tA thing .\n")
    with pytest.raises(DataError, match=r"captions.txt:13: the image elsewhere.png is in none of"):
        captions(broken)
    (broken / "captions.txt").write_text("red-left.png A thing .\n")
    with pytest.raises(DataError, match=r"captions.txt:1: there is no tab"):
        captions(broken)
    with pytest.raises(NotFoundError, match=r"no such folder or archive of images"):
        captions(broken, images="nowhere")
    (broken / "bad.zip").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match=r"is no zip or tar file that can be read"):
        captions(broken, images="bad.zip")


def test_what_is_wrong_with_an_image_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "no.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"no.png: cannot be read as an image"):
        run.caption([str(tmp_path / "no.png")])
    with pytest.raises(NotFoundError, match=r"there is no such image"):
        run.caption([str(tmp_path / "none.png")])


def test_images_and_encoders_must_fit(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"'recurrent' reads no images; use kind = 'convolution'"):
        recipe(folder, "model.encoder={kind='recurrent'}")
    with pytest.raises(ConfigError, match=r"16 pixels cannot be cut into patches of 5"):
        recipe(folder, PATCHES.replace("patch_size=4", "patch_size=5"))
    with pytest.raises(ConfigError, match=r"reads images, but the task is 'translation'"):
        recipe(folder, "task={kind='translation'}")
    with pytest.raises(ConfigError, match=r"every stage needs a multiple of 8"):
        recipe(folder, "model.encoder.channels=[10]")
    with pytest.raises(ConfigError, match=r"'captioning' reads no text that could be copied"):
        recipe(folder, "model.decoder.copying=true", "text.shared=true")


def test_a_run_without_images_says_so(tmp_path: Path) -> None:
    seqloom.train(tiny_runs.recipe("training.steps=1"), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"reads no images"):
        seqloom.load(tmp_path / "run").caption(["x.png"])


def test_images_move_like_every_batch() -> None:
    images = Images(torch.zeros(2, 3, 4, 4, dtype=torch.uint8))
    assert images.map(lambda tensor: tensor[:1]).values.shape[0] == 1
