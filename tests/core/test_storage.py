"""Folders are whole or not there, and know when they were damaged."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import (
    MANIFEST,
    damage,
    new_folder,
    read_manifest,
    remove_folder,
    remove_leftovers,
    remove_leftovers_beside,
    replace_listed,
    sha256,
    write_file,
)


def _made(path: Path, text: str = "text") -> Path:
    with new_folder(path, step=3) as folder:
        (folder / "a").write_text(text)
        (folder / "deep").mkdir()
        (folder / "deep" / "b").write_bytes(b"\0" * 3_000_000)
    return path


def test_a_new_folder_is_whole_and_says_what_is_in_it(tmp_path: Path) -> None:
    folder = _made(tmp_path / "x" / "new")
    assert damage(folder) == []
    manifest = read_manifest(folder)
    assert manifest["step"] == 3
    assert set(manifest["files"]) == {"a", "deep/b"}
    assert manifest["files"]["a"] == {"bytes": 4, "sha256": sha256(folder / "a")}
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["new"]


def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    folder = _made(tmp_path / "new", "old")

    def fail() -> None:
        with new_folder(folder) as temporary:
            (temporary / "a").write_text("new")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert (folder / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    _made(folder, "new")
    assert (folder / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_every_difference_is_told(tmp_path: Path) -> None:
    folder = _made(tmp_path / "new")
    (folder / "a").write_text("texts")
    (folder / "deep" / "b").unlink()
    assert damage(folder) == [
        f"{folder / 'a'}: has 5 bytes where 4 were written",
        f"{folder / 'deep' / 'b'}: is missing",
    ]
    (folder / "a").write_text("tent")
    assert "SHA-256 differs" in damage(folder)[0]
    (folder / MANIFEST).unlink()
    with pytest.raises(NotFoundError, match=r"has no manifest\.json"):
        read_manifest(folder)


def test_a_file_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _made(tmp_path / "new")

    def broken(path: Path, size: int | None = None) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("seqloom.core.storage.sha256", broken)
    assert damage(folder)[0] == f"{folder / 'a'}: cannot be read: Input/output error"


@given(content=st.recursive(st.none() | st.integers() | st.text(), st.lists) | st.binary())
def test_no_other_file_is_taken_for_a_manifest(
    tmp_path_factory: pytest.TempPathFactory, content: object
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / MANIFEST).write_bytes(data)
    with pytest.raises(
        StorageError, match=r"manifest\.json: is damaged, or was written by another"
    ):
        read_manifest(folder)


def test_a_file_and_its_line_change_together(tmp_path: Path) -> None:
    folder = _made(tmp_path / "new")
    replace_listed(folder, "a", b"other")
    assert damage(folder) == []
    assert read_manifest(folder)["step"] == 3
    assert (folder / "a").read_bytes() == b"other"
    (folder / "a").write_text("text")
    assert damage(folder) == [f"{folder / 'a'}: has 4 bytes where 5 were written"]


def test_a_folder_is_taken_away_at_once(tmp_path: Path) -> None:
    remove_folder(_made(tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match="cannot be written: No such file"):
        remove_folder(tmp_path / "new")


def test_leftovers_of_this_folder_go_and_those_of_others_stay(tmp_path: Path) -> None:
    run = _made(tmp_path / "run")
    others = [".tmp-run-5-77", ".tmp-runs-7", ".tmp-notes", ".tmp-old-run-5-77"]
    for name in (*others, ".tmp-run-77", ".tmp-gone-run-77", ".tmp-old-run-77"):
        (tmp_path / name).mkdir()
    (run / ".tmp-latest").write_text("x")
    (run / "deep" / ".tmp-gone-x-5").mkdir()
    remove_leftovers_beside(run)
    remove_leftovers(run)
    assert {path.name for path in tmp_path.iterdir()} == {"run", *others}
    assert not list(run.rglob(".tmp-*"))
    assert damage(run) == []


def test_a_folder_that_had_left_its_place_comes_back(tmp_path: Path) -> None:
    _made(tmp_path / "run" / "evaluation" / "test").rename(
        tmp_path / "run" / "evaluation" / ".tmp-old-test-77"
    )
    remove_leftovers(tmp_path / "run")
    assert damage(tmp_path / "run" / "evaluation" / "test") == []


def test_what_cannot_be_written_names_place_and_room(tmp_path: Path) -> None:
    with pytest.raises(
        StorageError, match=r"there/x: cannot be written: No such file.*Choose another folder"
    ):
        write_file(tmp_path / "not" / "there" / "x", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(
        StorageError, match=r"folder: cannot be written: Is a dir.*Choose another folder"
    ):
        write_file(tmp_path / "folder", b"")
    assert os.listdir(tmp_path) == ["folder"]
