"""The files that a recipe expects: missing ones are an error, other sizes a warning."""

from pathlib import Path
from typing import Any

import pytest

from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_bundled_recipe, load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.data.checks.data_files import check_expected_files
from seqloom.data.checks.doctor import examine

EXPECTED = {
    "source": "Letters (Nobody 2000)",
    "licence": "CC0",
    "files": [{"file": f"{name}.tsv", "bytes": 8} for name in ("train", "dev", "unused")],
}


def config(folder: Path, *settings: str, **expected: Any) -> RunConfig:
    tables = {
        "data": {
            "folder": str(folder),
            "train": {"kind": "tsv", "path": "train.tsv"},
            "dev": {"kind": "tsv", "path": "dev.tsv"},
            "expected": {**EXPECTED, **expected},
        },
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 10, "schedule": {"kind": "constant"}},
    }
    return load_recipe(tables, list(settings)).config


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.tsv").write_text(text)


def test_one_error_lists_all_files_with_size_state_and_origin(tmp_path: Path) -> None:
    write(tmp_path, train="a\tb\n")
    with pytest.raises(NotFoundError) as caught:
        check_expected_files(config(tmp_path).data)
    assert str(caught.value) == (
        f"{tmp_path}: 1 of the 2 files that the recipe needs are missing:\n"
        "  train.tsv  8 bytes  found, but with 4 bytes\n"
        "  dev.tsv  8 bytes  missing\n"
        "Data set: Letters (Nobody 2000). Licence: CC0.\n"
        "Give the folder that contains them: --set data.folder=PATH"
    )
    found = examine(config(tmp_path))
    assert found.exit_code == NotFoundError.exit_code
    assert "dev.tsv  8 bytes  missing" in found.findings[0].what


def test_another_size_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, train="a\tb\nb\ta\n", dev="a\tb\n")
    warning = check_expected_files(config(tmp_path).data)
    assert warning is not None
    assert "1 of 2 files have another size" in warning
    assert "dev.tsv  8 bytes  found, but with 4 bytes" in warning
    assert "train.tsv" not in warning
    assert any(finding.what == warning for finding in examine(config(tmp_path)).findings)
    write(tmp_path, dev="a\tb\nb\ta\n")
    assert check_expected_files(config(tmp_path).data) is None


def test_files_that_a_changed_recipe_does_not_use_are_not_checked(tmp_path: Path) -> None:
    write(tmp_path, dev="a\tb\nb\ta\n", mine="a\tb\n")
    changed = config(tmp_path, "data.train.path=mine.tsv")
    assert check_expected_files(changed.data) is None


def test_wrong_expectations_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data.expected.files\[0\].bytes"):
        config(tmp_path, files=[{"file": "x", "bytes": 0}])
    with pytest.raises(ConfigError, match=r"data.expected.files"):
        config(tmp_path, files=[])


@pytest.mark.parametrize("name", sorted(bundled_recipes()))
def test_a_recipe_that_needs_a_folder_names_its_files_and_their_origin(
    name: str, tmp_path: Path
) -> None:
    text = bundled_recipes()[name].read_text(encoding="utf-8")
    needs_folder = "data.folder=PATH" in text
    data = load_bundled_recipe(name, [f"data.folder={tmp_path}"]).config.data
    assert needs_folder == (data.expected is not None)
    if data.expected is None:
        return
    with pytest.raises(NotFoundError) as caught:
        check_expected_files(data)
    message = str(caught.value)
    for file in data.expected.files:
        assert f"{file.file}  {file.bytes:,} bytes  missing" in message
    assert data.expected.licence in message
