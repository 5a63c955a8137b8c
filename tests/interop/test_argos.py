"""Packages for Argos Translate."""

import json
import os
import subprocess
import sys
import zipfile
from copy import copy
from pathlib import Path

import pytest
from huggingface_models import sentences

from seqloom.config.schema.decoding import BeamConfig
from seqloom.core.errors import ConfigError
from seqloom.data.modalities.text import TextModality
from seqloom.inference.run import Run, load
from seqloom.inference.target_language import TargetLanguages
from seqloom.interop.argos_export import check_argos, export_argos, parse_languages
from seqloom.text.preprocessing import Preprocessing
from seqloom.text.words import WordTokenizer
from support.cli_runner import run_cli
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("argos_program.py")
ARGOS_SEARCH = BeamConfig(width=4, length_penalty=0.2, length_counts_end=True, allow_unknown=True)
"""The search of Argos Translate."""


@pytest.fixture(scope="module")
def run(exportable_run: Path) -> Run:
    return load(exportable_run, engine="torch")


def test_the_package_has_the_files_that_argos_reads(exportable_run: Path, tmp_path: Path) -> None:
    package = tmp_path / "de_en.argosmodel"
    arguments = ("export", exportable_run, "--to", "argos", "--out", package)
    assert "--to argos requires --languages" in run_cli(*arguments).stderr
    result = run_cli(*arguments, "--languages", "de:en", "--license", "mit")
    assert result.exit_code == 0, result.stderr
    assert "same greedy outputs" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [package.name]
    with zipfile.ZipFile(package) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        folder = "translate-de_en-1_0/"
        metadata = json.loads(archive.read(f"{folder}metadata.json"))
        config = json.loads(archive.read(f"{folder}model/config.json"))
        card = archive.read(f"{folder}README.md").decode()
    assert names == {
        f"{folder}{name}"
        for name in (
            "metadata.json",
            "README.md",
            "sentencepiece.model",
            "model/config.json",
            "model/model.bin",
            "model/shared_vocabulary.json",
        )
    }
    assert (metadata["from_code"], metadata["to_name"]) == ("de", "English")
    assert config["add_source_eos"]
    assert 'translate("A sentence.", "de", "en")' in card
    assert "Licence of the model: mit" in card
    again = run_cli(*arguments, "--languages", "de:en")
    assert (again.exit_code, "already exists" in again.stderr) == (78, True)


def test_runs_that_argos_cannot_express_are_refused_with_all_reasons(tmp_path: Path) -> None:
    from seqloom.training.loop import train

    train(tiny_config("training.steps=1"), tmp_path / "run")
    with pytest.raises(ConfigError) as caught:
        export_argos(load(tmp_path / "run"), tmp_path / "x.argosmodel", ("de", "en"))
    message = str(caught.value)
    assert all(
        word in message
        for word in ("model.encoder is recurrent", "model.decoder is", "text.tokenizer.kind")
    )
    assert not (tmp_path / "x.argosmodel").exists()


def test_separate_vocabularies_and_target_languages_are_refused(run: Run) -> None:
    other = copy(run)
    other.task = copy(run.task)
    other.task.modality = TextModality(WordTokenizer.train(["a"], Preprocessing(), 9, 1))
    other.languages = TargetLanguages("run", ("<2en>",), tag_is_in_source=True)
    reasons = " ".join(check_argos(other))
    assert "text.shared: Argos has one tokenizer" in reasons
    assert "data: Argos cannot add the tag" in reasons


@pytest.mark.parametrize("text", ["de", "de-en", "DE:EN", "de:", "../x:en"])
def test_invalid_languages_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="for example de:en"):
        parse_languages(text)


@pytest.mark.long
def test_argos_translates_with_the_package(run: Run, tmp_path: Path) -> None:
    """Installs argos-translate-lt in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "argos"], check=True)
    python = tmp_path / "argos" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "argos-translate-lt"], check=True)
    package = tmp_path / "de_en.argosmodel"
    export_argos(run, package, ("de", "en"))
    texts = sentences("source")[:100]
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    result = subprocess.run(
        [python, PROGRAM, package],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **home, "PYTHONPATH": ""},
    )
    found = json.loads(result.stdout)
    assert found["name"] == "German → English"
    expected = run.translate(
        texts, decoding=ARGOS_SEARCH, attention=False, split=False, pass_through=False
    )
    # Beam search compares different numbers of candidates, so that a few outputs may differ.
    same = [a.text == b for a, b in zip(expected, found["outputs"], strict=True)]
    assert sum(same) >= 95
