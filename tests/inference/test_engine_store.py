"""Converted models are stored in the run folder, or in the cache, and rebuilt if damaged."""

import shutil
from pathlib import Path

import pytest
from engine_runs import TEXTS, train_transformer

from seqloom.core.errors import ConfigError, StorageError
from seqloom.core.storage import find_damage
from seqloom.inference.engine import store
from seqloom.inference.engine.convert import Precision, convert
from seqloom.inference.options import TEXT_ONLY
from seqloom.inference.run import load
from seqloom.models.seq2seq import Model
from seqloom.runs.integrity import run_damage
from support.tiny_runs import temporary_files

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_transformer(tmp_path_factory.mktemp("engine-store") / "run")


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run without converted models."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def converted_models(folder: Path) -> list[Path]:
    return sorted((folder / "engines").glob("*"))


@pytest.fixture
def forbid_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr(store, "convert", fail)


def test_converted_model_is_stored_and_reused(folder: Path, request: pytest.FixtureRequest) -> None:
    first = load(folder).choose_engine(TEXT_ONLY)
    (path,) = converted_models(folder)
    assert find_damage(path) == []
    assert run_damage(folder) == []
    assert not temporary_files(folder)
    request.getfixturevalue("forbid_conversion")
    assert load(folder).choose_engine(TEXT_ONLY).note == first.note


@pytest.mark.parametrize("name", ["model.bin", "manifest.json", "agreement.json", "config.json"])
def test_damaged_model_is_converted_again(folder: Path, name: str) -> None:
    expected = load(folder).translate(TEXTS, attention=False)
    (path,) = converted_models(folder)
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (path / name).write_bytes(data)
    assert find_damage(path)
    assert load(folder).translate(TEXTS, attention=False) == expected
    assert converted_models(folder) == [path]
    assert find_damage(path) == []


def test_model_of_other_settings_replaces_the_old_one(folder: Path) -> None:
    load(folder).choose_engine(TEXT_ONLY)
    (old,) = converted_models(folder)
    changed = load(folder, ["model.decoder.attention.score.scale=one"])
    changed.choose_engine(TEXT_ONLY)
    (new,) = converted_models(folder)
    assert new != old


def test_model_is_stored_in_the_cache_if_the_run_folder_is_not_writable(
    folder: Path, isolated_cache: Path, request: pytest.FixtureRequest
) -> None:
    (folder / "engines").write_text("a file instead of a folder", encoding="utf-8")
    assert load(folder).choose_engine(TEXT_ONLY).engine is not None
    (path,) = (isolated_cache / "engines").glob("ctranslate2-*")
    assert find_damage(path) == []
    request.getfixturevalue("forbid_conversion")
    assert load(folder).choose_engine(TEXT_ONLY).engine is not None


def test_torch_is_used_with_a_reason_if_no_folder_is_writable(
    folder: Path, isolated_cache: Path
) -> None:
    (folder / "engines").write_text("a file instead of a folder", encoding="utf-8")
    isolated_cache.parent.mkdir(exist_ok=True)
    isolated_cache.write_text("a file instead of a folder", encoding="utf-8")
    choice = load(folder).choose_engine(TEXT_ONLY)
    assert choice.engine is None
    assert "cannot be written" in choice.note
    with pytest.raises(StorageError, match="cannot be written"):
        load(folder, engine="ctranslate2").translate(["a"])


def test_conversion_with_different_results_is_rejected(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert_wrongly(model: Model, path: Path, precision: Precision) -> None:
        bias = model.decoder.readout.get_submodule("output").get_parameter("bias").data
        bias[5] += 0.01
        convert(model, path, precision)
        bias[5] -= 0.01

    monkeypatch.setattr(store, "convert", convert_wrongly)
    with pytest.raises(ConfigError, match=r"differs from the torch model\. On "):
        load(folder, engine="ctranslate2").translate(["a"])
    choice = load(folder).choose_engine(TEXT_ONLY)
    assert choice.engine is None
    assert "differs from the torch model" in choice.note
    assert converted_models(folder) == []
