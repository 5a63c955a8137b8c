"""`read_info` describes every kind of run, without torch and without the data."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import seqloom
from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import MANIFEST, _serialise_manifest, read_manifest, write_file
from seqloom.inference.forecaster import is_forecaster
from seqloom.runs.archive import pack_run
from seqloom.runs.info import read_info
from support.small_runs import TRAINERS
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow
KINDS = {
    "reverser": ("translation", "recurrent", "recurrent", 2),
    "transformer": ("translation", "transformer", "transformer", 2),
    "polyglot": ("translation", "recurrent", "recurrent", 2),
    "speaker": ("language-model", "none", "recurrent", 1),
    "labeller": ("labels", "recurrent", "labels", 2),
    "captioner": ("captioning", "convolution", "recurrent", 1),
    "forecaster": ("forecast", "recurrent", "recurrent", 0),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_run_is_described_also_as_a_packed_run(name: str, tmp_path: Path) -> None:
    folder = TRAINERS[name](tmp_path / "run")
    if is_forecaster(folder):
        forecaster = seqloom.load_forecaster(folder)
        model = forecaster.model
        forecaster.evaluate("test").save(folder)
    else:
        run = seqloom.load(folder)
        model = run.model
        run.evaluate("test").save(folder)
    info = read_info(folder)
    found = (info.task, info.encoder, info.decoder, len(info.vocabularies))
    assert found == KINDS[name]
    assert info.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert info.data.train_examples
    assert info.training.reason == "done"
    assert info.training.step == info.training.steps
    assert info.training.seconds is not None
    assert info.versions["seqloom"] == seqloom.__version__
    (evaluation,) = info.evaluations
    assert evaluation.name == "test"
    assert evaluation.scores
    pack_run(folder, tmp_path / "packed")
    from_file = read_info(tmp_path / "packed")
    assert from_file.evaluations == info.evaluations
    assert from_file.training == info.training
    assert from_file.bytes < info.bytes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("info") / "run"
    seqloom.train(tiny_config("training.steps=2"), folder)
    return folder


def test_info_does_not_import_torch(run: Path) -> None:
    program = (
        "import sys; from seqloom.cli.main import app\n"
        f"app(['info', {str(run)!r}, '--json'], standalone_mode=False)\n"
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.split()[-1] == "False", done.stderr
    assert json.loads(done.stdout)["task"] == "translation"


def test_info_names_the_parent_of_a_fine_tuned_run(run: Path, tmp_path: Path) -> None:
    data = {"train": {"kind": "synthetic", "task": "copy", "examples": 20, "symbols": 4}}
    dev = {"dev": {"kind": "synthetic", "task": "copy", "examples": 4, "symbols": 4}}
    seqloom.fine_tune({"data": data | dev}, run, tmp_path / "run", settings=["training.steps=1"])
    parent = read_info(tmp_path / "run").parent
    assert parent is not None
    assert (parent.run, parent.weights) == (str(run), seqloom.load(run).weights_digest)


def test_a_run_of_a_newer_format_says_what_to_do(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    content = {**read_manifest(copy), "schema": 2}
    write_file(copy / MANIFEST, _serialise_manifest(content))
    for read in (read_info, seqloom.load):
        with pytest.raises(StorageError, match=r"newer version of seqloom \(format 2.*Upgrade"):
            read(copy)


def test_a_run_without_a_format_version_is_refused(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    content = read_manifest(copy)
    del content["schema"]
    write_file(copy / MANIFEST, _serialise_manifest(content))
    for read in (read_info, seqloom.load):
        with pytest.raises(StorageError, match="is damaged, or was written by another version"):
            read(copy)


def test_a_folder_that_is_no_run_and_a_damaged_report_are_errors(run: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is not a run folder"):
        read_info(tmp_path)
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    (copy / "evaluation" / "test").mkdir(parents=True)
    (copy / "evaluation" / "test" / "report.json").write_text("{}", encoding="utf-8")
    with pytest.raises(StorageError, match=r"report\.json: is damaged.*seqloom evaluate"):
        read_info(copy)


@pytest.mark.parametrize("name", ["best", "weights/*/model.safetensors"])
def test_damaged_weights_are_an_error_that_says_what_to_do(
    run: Path, tmp_path: Path, name: str
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    [path] = copy.glob(name)
    path.write_bytes(b"damaged")
    with pytest.raises(
        StorageError, match=rf"{path}: .*\. Copy the whole run again from its source"
    ):
        read_info(copy)


def test_a_run_that_has_just_started_can_be_described(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    for name in ("weights", "checkpoints"):
        shutil.rmtree(copy / name)
    for name in ("best", "latest", "metrics.jsonl"):
        (copy / name).unlink()
    info = read_info(copy)
    assert info.parameters is None
    assert (info.training.step, info.training.started) == (0, None)
