"""The commands `import` and `export`, and other commands on an imported run."""

import json
import shutil
from pathlib import Path

import pytest
from huggingface_models import sentences

from seqloom.inference.run import load
from support.cli_runner import run_cli

TEXT = "Das ist gut."


def test_a_model_is_imported_and_translates(marian: Path, tmp_path: Path) -> None:
    result = run_cli("import", marian, "--run", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert f"seqloom translate {tmp_path / 'run'}" in result.stderr
    translated = run_cli("translate", tmp_path / "run", "--beam", "2", stdin=TEXT.encode())
    assert translated.exit_code == 0, translated.stderr
    [expected] = load(tmp_path / "run", engine="torch").translate([TEXT], beam=2)
    assert translated.stdout == f"{expected.text}\n"


def test_the_target_languages_are_listed(multilingual_marian: Path, tmp_path: Path) -> None:
    result = run_cli("import", multilingual_marian, "--run", tmp_path / "run")
    assert "target languages (--to): deu, fra" in result.stderr
    without = run_cli("translate", tmp_path / "run", stdin=TEXT.encode())
    assert without.exit_code == 65
    assert "Available: deu, fra" in without.error
    translated = run_cli("translate", tmp_path / "run", "--to", "fra", stdin=TEXT.encode())
    assert translated.exit_code == 0, translated.stderr


@pytest.mark.parametrize("command", ["translate", "inspect", "evaluate"])
def test_a_hugging_face_folder_in_place_of_a_run_names_the_import_command(
    command: str, marian: Path
) -> None:
    result = run_cli(command, marian)
    assert result.exit_code == 66
    assert f"Import it with `seqloom import {marian} --run runs/{marian.name}`." in result.error


@pytest.mark.parametrize(
    "command", [("inspect", TEXT), ("search", TEXT), ("explain", TEXT, "--step", "1")]
)
def test_an_imported_run_can_be_inspected(command: tuple[str, ...], marian_run: Path) -> None:
    name, *arguments = command
    result = run_cli(name, marian_run, *arguments)
    assert result.exit_code == 0, result.stderr
    assert result.stdout


def test_an_imported_run_is_evaluated_on_given_data(marian_run: Path, tmp_path: Path) -> None:
    pairs = zip(sentences("source")[:10], sentences("target")[:10], strict=True)
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    copy = shutil.copytree(marian_run, tmp_path / "run")
    data = f"data.test={{kind='tsv', path='{path}'}}"
    result = run_cli("evaluate", copy, "--set", data, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["sentences"] == 10


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("evaluate",), "--set 'data.test="),
        (("evaluate", "--split", "train"), "--set 'data.train="),
        (("evaluate", "--split", "dev"), "--set 'data.train="),
        (("doctor",), "--set 'data.train="),
    ],
    ids=" ".join,
)
def test_a_command_that_needs_data_says_how_to_give_it(
    arguments: tuple[str, ...], advice: str, marian_run: Path
) -> None:
    name, *options = arguments
    result = run_cli(name, marian_run, *options)
    assert result.exit_code in (65, 78), result.stderr
    assert advice in f"{result.stdout} {result.error}"


def test_training_an_imported_run_is_an_error_that_names_the_reason(
    marian_run: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(marian_run, tmp_path / "run")
    result = run_cli("train", copy, "--resume")
    assert result.exit_code in (65, 78), result.stderr
    assert "imported" in result.error


def test_a_run_is_exported(exportable_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run_cli("export", exportable_run, "--to", "ctranslate2", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "same greedy outputs" in result.stderr
    assert {path.name for path in out.iterdir()} == {
        *("README.md", "config.json", "model.bin", "shared_vocabulary.json"),
        *("source.spm", "target.spm"),
    }


def test_an_imported_run_is_not_exported(marian_run: Path, tmp_path: Path) -> None:
    result = run_cli("export", marian_run, "--to", "huggingface", "--out", tmp_path / "out")
    assert result.exit_code == 78
    assert "'imported' is not possible" in result.error
