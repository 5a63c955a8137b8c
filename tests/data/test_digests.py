"""Digests of large files are cached until the file changes."""

import os
from pathlib import Path

import pytest

from seqloom.core.storage import sha256
from seqloom.data.corpus import digests


def write_old_file(path: Path, text: str, age: int = 10) -> Path:
    """Write a file whose modification time is `age` seconds ago."""
    path.write_text(text)
    os.utime(path, (path.stat().st_mtime - age,) * 2)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose content was read. Every file counts as large and unchanged for long."""
    paths: list[Path] = []

    def read(path: Path) -> str:
        paths.append(path)
        return sha256(path)

    monkeypatch.setattr(digests, "sha256", read)
    monkeypatch.setattr(digests, "MIN_CACHED_BYTES", 0)
    monkeypatch.setattr(digests, "MIN_AGE", -1.0)
    return paths


def test_large_file_is_read_once(tmp_path: Path, reads: list[Path]) -> None:
    path = write_old_file(tmp_path / "a", "one")
    assert digests.file_digest(path) == digests.file_digest(path)
    assert len(reads) == 1


def test_changed_file_is_read_again_even_if_its_modification_time_is_restored(
    tmp_path: Path, reads: list[Path]
) -> None:
    path = write_old_file(tmp_path / "a", "one")
    before, modified = digests.file_digest(path), path.stat().st_mtime_ns
    path.write_text("two")
    os.utime(path, ns=(modified, modified))
    assert digests.file_digest(path) != before


def test_digest_of_a_file_that_has_just_changed_is_not_cached(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "MIN_AGE", 2.0)
    path = tmp_path / "a"
    path.write_text("one")
    digests.file_digest(path)
    digests.file_digest(path)
    assert len(reads) == 2


def test_damaged_cache_entry_is_ignored(
    tmp_path: Path, reads: list[Path], isolated_cache: Path
) -> None:
    path = write_old_file(tmp_path / "a", "one")
    before = digests.file_digest(path)
    (entry,) = (isolated_cache / "digests").iterdir()
    entry.write_text("")
    assert digests.file_digest(path) == before
