"""Atomic folders are complete or absent, and damage is detected."""

import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import (
    MACHINE,
    MANIFEST,
    atomic_file,
    atomic_folder,
    find_damage,
    read_manifest,
    remove_folder,
    remove_leftovers,
    remove_leftovers_beside,
    remove_leftovers_of_ended_processes,
    replace_listed_file,
    sha256,
    storage_errors,
    temporary_path,
    write_file,
)


def make_folder(path: Path, text: str = "text") -> Path:
    with atomic_folder(path, step=3) as folder:
        (folder / "a").write_text(text)
        (folder / "deep").mkdir()
        (folder / "deep" / "b").write_bytes(b"\0" * 3_000_000)
    return path


def test_a_new_folder_is_intact_and_its_manifest_lists_its_files(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "x" / "new")
    assert find_damage(folder) == []
    manifest = read_manifest(folder)
    assert manifest["step"] == 3
    assert set(manifest["files"]) == {"a", "deep/b"}
    assert manifest["files"]["a"] == {"bytes": 4, "sha256": sha256(folder / "a")}
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["new"]


def test_a_failing_block_keeps_the_old_folder(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "new", "old")

    def fail() -> None:
        with atomic_folder(folder) as temporary:
            (temporary / "a").write_text("new")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert (folder / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    make_folder(folder, "new")
    assert (folder / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_find_damage_lists_every_difference(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "new")
    (folder / "a").write_text("texts")
    (folder / "deep" / "b").unlink()
    assert find_damage(folder) == [
        f"{folder / 'a'}: has 5 bytes instead of 4",
        f"{folder / 'deep' / 'b'}: is missing",
    ]
    (folder / "a").write_text("tent")
    assert "SHA-256 differs" in find_damage(folder)[0]
    (folder / MANIFEST).unlink()
    with pytest.raises(NotFoundError, match=r"contains no manifest\.json"):
        read_manifest(folder)


def test_find_damage_reports_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(tmp_path / "new")

    def broken(path: Path, size: int | None = None) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("seqloom.core.storage.sha256", broken)
    assert find_damage(folder)[0] == f"{folder / 'a'}: cannot be read: Input/output error"


@given(content=st.recursive(st.none() | st.integers() | st.text(), st.lists) | st.binary())
def test_any_other_content_is_rejected_as_a_manifest(
    tmp_path_factory: pytest.TempPathFactory, content: object
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / MANIFEST).write_bytes(data)
    with pytest.raises(
        StorageError, match=r"manifest\.json: is damaged, or was written by another"
    ):
        read_manifest(folder)


def test_a_file_and_its_manifest_entry_change_together(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "new")
    replace_listed_file(folder, "a", b"other")
    assert find_damage(folder) == []
    assert read_manifest(folder)["step"] == 3
    assert (folder / "a").read_bytes() == b"other"
    (folder / "a").write_text("text")
    assert find_damage(folder) == [f"{folder / 'a'}: has 4 bytes instead of 5"]


def test_remove_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    remove_folder(make_folder(tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match="cannot be written: No such file"):
        remove_folder(tmp_path / "new")


def test_only_leftovers_of_this_folder_are_removed(tmp_path: Path) -> None:
    run = make_folder(tmp_path / "run")
    others = [".tmp-run-5-77@here", ".tmp-runs-7@here", ".tmp-notes", ".tmp-run-77"]
    mine = [".tmp-run-77@here", ".tmp-gone-run-77@there", ".tmp-old-run-77@", ".tmp-run-8@here"]
    for name in (*others, *mine):
        (tmp_path / name).mkdir()
    (run / ".tmp-latest").write_text("x")
    (run / "deep" / ".tmp-gone-x-5").mkdir()
    remove_leftovers_beside(run)
    remove_leftovers(run)
    assert {path.name for path in tmp_path.iterdir()} == {"run", *others}
    assert not list(run.rglob(".tmp-*"))
    assert find_damage(run) == []


def test_leftovers_of_running_processes_are_kept(tmp_path: Path) -> None:
    ended = 2**22 + 1  # Linux never gives this number to a process
    kept = [temporary_path(tmp_path / "run"), tmp_path / f".tmp-run-1@{MACHINE}"]
    # This machine cannot know whether a process of another machine is running.
    kept += [tmp_path / f".tmp-run-{ended}@{MACHINE}x", tmp_path / f".tmp-run-{ended}"]
    for path in (*kept, tmp_path / f".tmp-run-{ended}@{MACHINE}"):
        path.mkdir()
    remove_leftovers_of_ended_processes(tmp_path / "run")
    assert {*tmp_path.iterdir()} == {*kept}


def test_a_retired_folder_without_replacement_is_restored(tmp_path: Path) -> None:
    make_folder(tmp_path / "run" / "evaluation" / "test").rename(
        tmp_path / "run" / "evaluation" / ".tmp-old-test-77@here"
    )
    remove_leftovers(tmp_path / "run")
    assert find_damage(tmp_path / "run" / "evaluation" / "test") == []


def test_write_errors_name_the_path_and_the_remedy(tmp_path: Path) -> None:
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


def test_a_full_disk_is_reported_with_the_free_space(tmp_path: Path) -> None:
    def fill_disk() -> None:
        with storage_errors(tmp_path / "x"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageError, match=r"No space left on device \([\d,]+ bytes free\).*Free"):
        fill_disk()


def test_a_failing_block_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_file(path) as temporary:
        temporary.write_text("old", encoding="utf-8")
    with pytest.raises(StorageError), atomic_file(path) as temporary:
        (temporary / "file").write_text("new", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_symbolic_link_is_damage_even_if_it_leads_to_the_same_bytes(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "new")
    (folder / "a").rename(folder / "copy")
    (folder / "a").symlink_to("copy")
    assert find_damage(folder) == [
        f"{folder / 'a'}: is a symbolic link, or lies outside the folder"
    ]


def test_a_changed_fact_in_a_manifest_is_damage(tmp_path: Path) -> None:
    path = make_folder(tmp_path / "new") / MANIFEST
    path.write_text(path.read_text().replace('"step": 3', '"step": 4'))
    with pytest.raises(StorageError, match=r"manifest\.json: is damaged"):
        read_manifest(path.parent)
