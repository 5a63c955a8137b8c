"""CheckpointStore: numbered folders and a pointer to the current one."""

import shutil
from pathlib import Path

import pytest

from seqloom.core.errors import StorageError
from seqloom.core.storage import remove_folder, write_file
from seqloom.runs.checkpoint_store import COPY_RUN, CheckpointStore, _pointer_content


def new_store(folder: Path, *steps: int, keep: int = 2) -> CheckpointStore:
    """A store to which these steps were added."""
    store = CheckpointStore(folder / "store", folder / "pointer")
    for step in steps:
        store.add(step, lambda path: write_file(path / "x", b"x"), keep)
    return store


def names(store: CheckpointStore) -> list[str]:
    return [path.name for path in store.paths()]


def test_store_keeps_the_newest_and_points_to_the_last(tmp_path: Path) -> None:
    store = new_store(tmp_path, 1, 2, 9, 10)
    assert names(store) == ["step-00000010", "step-00000009"]
    assert store.current() == store.folder / "step-00000010"


def test_repeated_steps_are_numbered(tmp_path: Path) -> None:
    store = new_store(tmp_path, *[5] * 13)
    assert names(store) == ["step-00000005-12", "step-00000005-11"]
    assert store.current() == store.folder / "step-00000005-12"


def test_adding_an_earlier_step_removes_later_ones_but_not_itself(tmp_path: Path) -> None:
    store = new_store(tmp_path, 40, keep=1)
    store.add(20, lambda path: write_file(path / "x", b""), keep=1)
    assert names(store) == ["step-00000020"]
    assert store.current() == store.folder / "step-00000020"


def test_intact_falls_back_and_reports_the_damage(tmp_path: Path) -> None:
    store = new_store(tmp_path, 1, 2)
    (store.folder / "step-00000002" / "x").unlink()
    ((path, problems),) = store.intact()
    assert path.name == "step-00000001"
    assert problems == [f"{store.folder / 'step-00000002' / 'x'}: is missing"]
    store.make_current(path)
    assert store.current() == path
    assert names(store) == ["step-00000001"]
    remove_folder(path)
    with pytest.raises(StorageError, match="points to 'step-00000001', which does not exist"):
        store.current()
    store.pointer.unlink()
    assert store.is_empty()
    assert store.current() is None


def test_missing_pointer_is_damage_after_the_first_add(tmp_path: Path) -> None:
    store = new_store(tmp_path, 1)
    store.pointer.unlink()
    with pytest.raises(StorageError, match="pointer: is missing"):
        store.current()
    write_file(store.pointer, b"none\n")  # as between writing the first folder and the pointer
    assert store.current() is None
    assert [path.name for path, _ in store.intact()] == ["step-00000001"]


@pytest.mark.parametrize(
    "content", [b"", b"step-00000001\n", b"step-00000001 0123456789abcdef\n", b"\xff\x00 \x00"]
)
def test_a_changed_pointer_is_not_reported_as_a_missing_folder(
    tmp_path: Path, content: bytes
) -> None:
    store = new_store(tmp_path, 1)
    write_file(store.pointer, content)
    with pytest.raises(StorageError, match="pointer: has changed since it was written"):
        store.current()
    ((path, _),) = store.intact()
    assert path.name == "step-00000001"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "pointer: is missing or cannot be read"),
        (b"step-00000001\n", "pointer: has changed since it was written"),
        (
            _pointer_content(Path("step-00000009")),
            "points to 'step-00000009', which does not exist",
        ),
    ],
)
def test_the_error_about_a_damaged_pointer_says_what_to_do(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    store = new_store(tmp_path, 1)
    if content is None:
        store.pointer.unlink()
    else:
        write_file(store.pointer, content)
    with pytest.raises(StorageError) as caught:
        store.current_path()
    assert problem in str(caught.value)
    assert str(caught.value).endswith(f". {COPY_RUN}")
    # Lists of damage have their own advice.
    assert store.pointer_damage() == [str(caught.value).removesuffix(f". {COPY_RUN}")]
    ((_, problems),) = store.intact()
    assert problems == store.pointer_damage()


def test_the_files_of_another_step_are_damage(tmp_path: Path) -> None:
    store = new_store(tmp_path, 1, 2)
    newest, oldest = store.paths()
    remove_folder(newest)
    shutil.copytree(oldest, newest)
    with pytest.raises(StorageError, match="step-00000002: contains the files of another step"):
        store.current()
