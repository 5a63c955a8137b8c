"""Captioning of generated images: squares of three colours."""

import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import seqloom
from seqloom.analysis.explanation import explain
from seqloom.analysis.gradients import trace_gradients
from seqloom.cli.main import app
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import CaptionsConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.batch import Images
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.data.batching.bucketing import BucketLayout
from seqloom.data.modalities.images import image_names, read_pixels
from seqloom.data.preparation.request import fingerprint
from seqloom.data.readers.splits import read_corpus
from seqloom.decoding.fast import compiled
from seqloom.inference.run import Run
from seqloom.metrics.bleu import bleu_1_with_punctuation, bleu_by_order
from seqloom.models.build import build_model
from seqloom.nn.convolution import Crop
from seqloom.tasks.build import learn_task
from seqloom.viz.caption_attention import attention_brightness
from support.cli_runner import run_cli
from support.tiny_runs import tiny_config

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 60), "blue": (40, 60, 220)}
SIDES = ("left", "right")
SIZE = 16


def image_bytes(colour: str, side: str) -> bytes:
    """A PNG file: a square of one colour on one side of a grey image that is wider than high."""
    image = Image.new("RGB", (24, 20), (128, 128, 128))
    image.paste(COLOURS[colour], (4, 5, 11, 16) if side == "left" else (13, 5, 20, 16))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


SQUARES = [(colour, side) for colour in COLOURS for side in SIDES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six images in a zip file with two captions each, and a list of two of them."""
    folder = tmp_path_factory.mktemp("photos")
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for colour, side in SQUARES:
            archive.writestr(f"{colour}-{side}.png", image_bytes(colour, side))
    lines = [
        f"{colour}-{side}.png#{number}\t{caption}"
        for colour, side in SQUARES
        for number, caption in enumerate(
            [f"A {colour} square on the {side} .", f"On the {side} , a {colour} square ."]
        )
    ]
    (folder / "captions.txt").write_text("\n".join(lines) + "\n")
    (folder / "some.txt").write_text("red-left.png\nblue-right.png\n")
    return folder


def caption_config(folder: Path, *settings: str) -> RunConfig:
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
    """Trained, moved, and loaded from the new folder.

    Training mirrors images at random, so the run learns colours, but not sides.
    """
    runs = tmp_path_factory.mktemp("runs")
    seqloom.train(caption_config(folder), runs / "first")
    shutil.move(runs / "first", runs / "moved")
    return seqloom.load(runs / "moved")


@pytest.mark.slow
def test_captions_name_the_colour(run: Run, folder: Path) -> None:
    for colour, side in SQUARES:
        [output] = run.caption([f"{folder}/images.zip/{colour}-{side}.png"])
        assert colour in output.text
        assert not any(other in output.text for other in COLOURS if other != colour)


@pytest.mark.slow
def test_captions_do_not_depend_on_the_batch(run: Run, folder: Path) -> None:
    paths = [f"{folder}/images.zip/{colour}-{side}.png" for colour, side in SQUARES]
    batched = run.caption(paths)
    single = [run.caption([path])[0] for path in paths]
    for first, second in zip(batched, single, strict=True):
        assert first.text == second.text
        assert first.score == pytest.approx(second.score, abs=1e-4)


@pytest.mark.slow
@pytest.mark.long
def test_compiled_engine_gives_the_same_captions(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(compiled.INDUCTOR_SETTINGS, "max_autotune", False)  # compiles faster
    compiled_run = seqloom.load(run.folder, engine="compiled")
    for colour, side in SQUARES:
        image = f"{folder}/images.zip/{colour}-{side}.png"
        [first], [second] = compiled_run.caption([image]), run.caption([image])
        assert first.text == second.text
        assert first.score == pytest.approx(second.score, abs=1e-4)


@pytest.mark.slow
def test_attention_covers_the_cells_of_the_grid(run: Run, folder: Path) -> None:
    [output] = run.caption([f"{folder}/images.zip/red-left.png"])
    assert output.attention is not None
    assert output.attention.shape == (len(output.pieces), 16)  # 16 pixels halved twice: 4 x 4
    torch.testing.assert_close(output.attention.sum(1), torch.ones(len(output.pieces)))


@pytest.mark.slow
def test_explanation_of_a_step_shows_its_attention_over_cells(run: Run, folder: Path) -> None:
    image = str(folder / "images.zip" / "red-left.png")
    explanation = explain(run, image, step=2)
    expected = run.caption([image])[0].attention
    assert expected is not None
    weights = explanation.find("weights")
    torch.testing.assert_close(weights.values, expected[1])
    assert weights.labels[:2] == ("cell 1", "cell 2")
    with pytest.raises(ConfigError, match="there are no source steps to measure gradients at"):
        trace_gradients(run, image)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [True, False], ids=["files", "one image"])
def test_advice_about_gradients_of_an_image_can_be_followed(
    run: Run, folder: Path, tmp_path: Path, lines: bool
) -> None:
    image = f"{folder}/images.zip/red-left.png"
    caption = "a red square on the left ."
    (tmp_path / "images").write_text(f"{image}\n", encoding="utf-8")
    (tmp_path / "captions").write_text(f"{caption}\n", encoding="utf-8")
    files = [tmp_path / "images", tmp_path / "captions"]
    command = "gradient-profile" if lines else "gradients"
    result = run_cli(command, run.folder, *(files if lines else [image, caption]))
    assert result.exit_code == 78
    message = " ".join(result.stderr.split())
    assert "with one image and --at states, attention or weights" in message
    for place in ("states", "attention", "weights"):
        followed = run_cli("gradients", run.folder, image, caption, "--at", place)
        assert followed.exit_code == 0


@pytest.mark.slow
def test_all_captions_of_an_image_are_references(run: Run) -> None:
    report = run.evaluate("test")
    assert report.sentences == len(SQUARES)
    assert {len(example.references) for example in report.examples} == {2}
    scores = {score.name: score.value for score in report.scores}
    assert scores["BLEU-1"] > 60
    assert scores["BLEU-1"] >= scores["BLEU-4"]


@pytest.mark.slow
def test_caption_command_prints_captions_and_draws_attention(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "dog.png").write_bytes(image_bytes("green", "left"))
    figure = tmp_path / "attention.png"
    command = ["caption", str(run.folder), str(tmp_path / "dog.png"), "--show", str(figure)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "green" in result.stdout
    with Image.open(figure) as drawn:
        assert drawn.width > 100


@pytest.mark.slow
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
def test_training_reduces_the_loss_for_every_encoder_and_decoder(
    settings: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    losses: list[float] = []

    def collect_loss(event: object) -> None:
        data = getattr(event, "data", {})
        if "perplexity" in data:
            losses.append(data["loss"])

    seqloom.train(
        caption_config(folder, *settings, "training.steps=30", "training.evaluate_every=10"),
        tmp_path / "run",
        report=collect_loss,
    )
    assert losses[-1] < losses[0] * 0.8


def test_padding_images_do_not_change_the_loss(folder: Path) -> None:
    """Captured steps need batches of one shape, so batches are padded with black images."""
    config = caption_config(folder)
    task = learn_task(config)
    corpus = task.corpus(config, "train", lambda count: None)
    torch.manual_seed(1)
    model = build_model(config.model, task.signature).eval()
    rows = np.arange(len(SQUARES))
    plain, bucketed = corpus.gather(rows), BucketLayout(256).gather(corpus, rows)
    assert bucketed.size > plain.size
    with torch.inference_mode():
        losses = [float(task.loss(model, batch)) for batch in (plain, bucketed)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def images_in_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("deep/one.png", image_bytes("red", "left"))
    return folder / "a.zip"


def images_in_tar(folder: Path) -> Path:
    with tarfile.open(folder / "a.tar.gz", "w:gz") as archive:
        content = image_bytes("red", "left")
        entry = tarfile.TarInfo("deep/one.png")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return folder / "a.tar.gz"


def images_in_folder(folder: Path) -> Path:
    (folder / "deep").mkdir()
    (folder / "deep" / "one.png").write_bytes(image_bytes("red", "left"))
    return folder


@pytest.mark.parametrize("pack", [images_in_zip, images_in_tar, images_in_folder])
def test_images_are_read_from_folders_zip_and_tar_files(
    pack: Callable[[Path], Path], tmp_path: Path
) -> None:
    container = pack(tmp_path)
    assert list(image_names(container)) == ["deep/one.png"]
    pixels = read_pixels(f"{container}/deep/one.png", 20)
    assert pixels.shape == (3, 20, 20)
    assert tuple(pixels[:, 10, 5]) == COLOURS["red"]


def test_images_are_cropped_to_the_middle_square(tmp_path: Path) -> None:
    wide = Image.new("RGB", (30, 10), (0, 0, 0))
    wide.paste((255, 255, 255), (10, 0, 20, 10))
    wide.save(tmp_path / "wide.png")
    assert read_pixels(str(tmp_path / "wide.png"), 10).min() == 255


def test_training_crops_are_random_squares_and_may_be_mirrored() -> None:
    image = torch.arange(36, dtype=torch.uint8).view(1, 1, 6, 6).expand(64, 3, 6, 6)
    crop = Crop(4)
    crop.mean.zero_()
    crop.deviation.fill_(1)
    crops = {tuple((one[0] * 255).round().int().flatten().tolist()) for one in crop(image)}
    possible = set()
    for top in range(3):
        for left in range(3):
            square = image[0, 0, top : top + 4, left : left + 4]
            possible |= {
                tuple(square.int().flatten().tolist()),
                tuple(square.flip(1).int().flatten().tolist()),
            }
    assert crops <= possible
    assert len(crops) > 6
    middle = crop.eval()(image[:1])[0, 0]
    torch.testing.assert_close((middle * 255).round(), image[0, 0, 1:5, 1:5].float())


def unnormalised_crop(size: int, zoom: float = 1.0, light: float = 0.0) -> Crop:
    """A crop without normalisation: outputs are the bytes divided by 255."""
    crop = Crop(size, zoom, light)
    crop.mean.zero_()
    crop.deviation.fill_(1)
    return crop


def test_zoom_selects_random_parts_of_an_image() -> None:
    """A part of a ramp is a ramp, reversed if mirrored. The smaller the part, the flatter it is."""
    ramp = torch.arange(0, 240, 10, dtype=torch.uint8).view(1, 1, 1, 24).expand(64, 3, 24, 24)
    crops = unnormalised_crop(12, zoom=0.5)(ramp)[:, 0] * 255  # (64, 12, 12)
    torch.testing.assert_close(crops, crops[:, :1].expand_as(crops))  # all rows are equal
    steps = crops[:, 0].diff(dim=1)[:, 1:-1]
    rising, falling = (steps >= -1e-3).all(1), (steps <= 1e-3).all(1)
    assert (rising | falling).all()
    assert rising.any()
    assert falling.any()
    slope = steps.abs().mean(1)
    assert slope.max() <= 20.1  # the whole ramp at half its resolution
    assert slope.min() >= 9.9  # half of the ramp at full resolution
    assert slope.std() > 1
    torch.testing.assert_close(
        unnormalised_crop(12, zoom=0.5).eval()(ramp[:1]), unnormalised_crop(12).eval()(ramp[:1])
    )


def test_light_changes_brightness_and_contrast_within_its_range() -> None:
    image = torch.tensor([100, 140], dtype=torch.uint8).view(1, 1, 1, 2).expand(256, 3, 2, 2)
    images = unnormalised_crop(2, light=0.2)(image)[:, 0, 0] * 255  # (256, 2)
    mean, contrast = images.mean(1), images.diff(dim=1).abs().squeeze(1)
    assert mean.min() >= 120 * 0.8 - 1e-3
    assert mean.max() <= 120 * 1.2 + 1e-3
    assert contrast.min() >= 40 * 0.8 - 1e-3
    assert contrast.max() <= 40 * 1.2 + 1e-3
    assert mean.std() > 5
    assert contrast.std() > 1


def test_cell_with_the_largest_weight_is_brightest() -> None:
    brightness = attention_brightness([0.1, 0.2, 0.6, 0.1], 4)
    assert brightness[3, 0] == 1
    assert brightness[0, 0] < brightness[0, 3] < 1


def test_bleu_of_captions_ignores_case_and_punctuation() -> None:
    [bleu_1, *_] = bleu_by_order(["A dog , runs"], [["a dog runs ."]])
    assert bleu_1.value == pytest.approx(100)


def test_bleu_1_with_punctuation_counts_every_mark_as_a_word() -> None:
    output, reference = "A dog runs.", "a cat runs ."
    [without_punctuation, *_] = bleu_by_order([output], [[reference]])
    assert without_punctuation.value == pytest.approx(100 * 2 / 3)
    assert bleu_1_with_punctuation([output], [[reference]]).value == pytest.approx(100 * 3 / 4)


def caption_sources(folder: Path, **settings: object) -> list[str]:
    """The image paths of a caption corpus."""
    defaults = {"images": "images.zip", "captions": "captions.txt"}
    config = CaptionsConfig.model_validate({**defaults, **settings})
    return [example.source for example in read_corpus(config, str(folder), "train", "data.train")]


def test_names_select_images(folder: Path) -> None:
    sources = caption_sources(folder, names="some.txt")
    assert {Path(source).name for source in sources} == {"red-left.png", "blue-right.png"}
    assert len(sources) == 4


def test_paths_of_images_can_start_with_the_home_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    settings = {"images": "~/images.zip", "captions": "~/captions.txt"}
    assert caption_sources(tmp_path, **settings) == caption_sources(folder)
    splits = {key: {"kind": "captions", **settings} for key in ("train", "dev", "test")}
    data = {"folder": str(tmp_path), **splits}
    expected = fingerprint(caption_config(folder).data, "train")
    assert fingerprint(DataConfig.model_validate(data), "train") == expected


@pytest.fixture
def broken(folder: Path, tmp_path: Path) -> Path:
    """A copy of the corpus, to be damaged by a test."""
    shutil.copytree(folder, tmp_path / "copy")
    return tmp_path / "copy"


def test_invalid_captions_are_an_error(broken: Path) -> None:
    (broken / "some.txt").write_text("red-left.png\nno-such.png\n")
    with pytest.raises(DataError, match=r"no caption for 1 of the images in some.txt: no-such.png"):
        caption_sources(broken, names="some.txt")
    with (broken / "captions.txt").open("a") as file:
        file.write("elsewhere.png#0\tA thing .\n")
    with pytest.raises(DataError, match=r"captions.txt:13: the image elsewhere.png is in none of"):
        caption_sources(broken)
    (broken / "captions.txt").write_text("~/red-left.png\tA thing .\n")
    with pytest.raises(
        DataError, match=r"captions.txt:1: the image ~/red-left.png is a path; write only the name"
    ):
        caption_sources(broken)
    (broken / "captions.txt").write_text("red-left.png A thing .\n")
    with pytest.raises(DataError, match=r"captions.txt:1: there is no tab"):
        caption_sources(broken)
    with pytest.raises(NotFoundError, match=r"no such folder or archive of images"):
        caption_sources(broken, images="nowhere")
    (broken / "bad.zip").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match=r"bad.zip: is .* zip or tar file"):
        caption_sources(broken, images="bad.zip")


@pytest.mark.slow
def test_unreadable_images_are_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "no.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"no.png: cannot be read as an image"):
        run.caption([str(tmp_path / "no.png")])
    with pytest.raises(NotFoundError, match=r"none.png: there is no such image; correct the path"):
        run.caption([str(tmp_path / "none.png")])


def test_incompatible_encoders_are_an_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"'recurrent' reads no images; use kind = 'convolution'"):
        caption_config(folder, "model.encoder={kind='recurrent'}")
    with pytest.raises(ConfigError, match=r"16 pixels cannot be .* into patches of 5"):
        caption_config(folder, PATCHES.replace("patch_size=4", "patch_size=5"))
    with pytest.raises(ConfigError, match=r"reads images, but the task is 'translation'"):
        caption_config(folder, "task={kind='translation'}")
    with pytest.raises(ConfigError, match=r"must be a positive multiple of 8"):
        caption_config(folder, "model.encoder.channels=[10]")
    with pytest.raises(ConfigError, match=r"model.decoder.copying: .*'captioning'"):
        caption_config(folder, "model.decoder.copying=true", "text.shared=true")


@pytest.mark.slow
def test_runs_for_text_reject_images(tmp_path: Path) -> None:
    seqloom.train(tiny_config("training.steps=1"), tmp_path / "run")
    with pytest.raises(ConfigError, match="this run does not read images"):
        seqloom.load(tmp_path / "run").caption(["x.png"])


def test_map_applies_to_the_pixels_of_images() -> None:
    images = Images(torch.zeros(2, 3, 4, 4, dtype=torch.uint8))
    assert images.map(lambda tensor: tensor[:1]).values.shape[0] == 1
