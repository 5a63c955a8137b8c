"""Packed runs: reproducible, complete, and safe to open."""

import hashlib
import json
import shutil
import stat
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import seqloom
from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.runs import archive
from seqloom.runs.archive import (
    CONTENTS,
    DATE,
    extract,
    is_extracted,
    is_packed_run,
    open_run,
    pack_run,
    unpack_run,
)
from seqloom.runs.integrity import run_damage
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "run"
    seqloom.train(tiny_config("training.steps=4"), folder)
    seqloom.load(folder).evaluate("test").save(folder)
    return folder


@pytest.fixture(scope="module")
def packed(run: Path) -> Path:
    path = run.parent / "model.seqloom"
    pack_run(run, path)
    return path


def test_packing_twice_gives_the_same_bytes(run: Path, packed: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    pack_run(copy, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == packed.read_bytes()


def test_a_packed_run_has_no_training_state_and_no_compression(packed: Path) -> None:
    with zipfile.ZipFile(packed) as file:
        names = file.namelist()
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_STORED}
    assert "config.toml" in names
    assert "evaluation/test/report.json" in names
    assert not [name for name in names if name.startswith(("checkpoints", "latest", "engines"))]


def test_a_packed_run_predicts_and_evaluates_like_its_folder(run: Path, packed: Path) -> None:
    from_folder, from_file = seqloom.load(run), seqloom.load(str(packed))
    texts = ["ab", "cab"]
    assert [each.text for each in from_file.translate(texts)] == [
        each.text for each in from_folder.translate(texts)
    ]
    assert from_file.evaluate("test").scores == from_folder.evaluate("test").scores
    assert is_extracted(from_file.folder)
    assert from_file.folder.name == "model"


def test_an_unpacked_run_is_an_intact_run_folder(packed: Path, tmp_path: Path) -> None:
    unpack_run(packed, tmp_path / "run")
    assert run_damage(tmp_path / "run") == []
    assert not is_extracted(tmp_path / "run")
    assert seqloom.load(tmp_path / "run").translate(["ab"])
    with pytest.raises(ConfigError, match="exists already"):
        unpack_run(packed, tmp_path / "run")
    assert [*tmp_path.iterdir()] == [tmp_path / "run"]


def test_concurrent_opening_extracts_one_intact_copy(packed: Path, isolated_cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(open_run, [packed] * 8))
    (folder,) = folders
    assert run_damage(folder) == []
    assert len([*(isolated_cache / "runs").glob("[!.]*")]) == 1


def test_a_run_without_weights_or_with_damage_is_not_packed(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    (copy / "config.toml").write_text("[data]\n", encoding="utf-8")
    with pytest.raises(StorageError, match="is damaged and cannot be packed"):
        pack_run(copy, tmp_path / "file")
    shutil.rmtree(copy)
    shutil.copytree(run, copy)
    for name in ("weights", "best"):
        (shutil.rmtree if (copy / name).is_dir() else Path.unlink)(copy / name)
    with pytest.raises(NotFoundError, match="has no weights yet"):
        pack_run(copy, tmp_path / "file")
    assert [*tmp_path.iterdir()] == [copy]


def test_a_file_that_is_no_packed_run_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello", encoding="utf-8")
    with pytest.raises(NotFoundError, match="is not a packed run"):
        unpack_run(tmp_path / "text", tmp_path / "run")
    with pytest.raises(NotFoundError, match="no such file"):
        unpack_run(tmp_path / "nothing", tmp_path / "run")


# Hostile and damaged files

Change = Callable[[list[tuple[zipfile.ZipInfo, bytes]], dict[str, Any]], None]


def member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, DATE)
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


def rewrite(packed: Path, path: Path, change: Change) -> Path:
    """Copy a packed run, with its members and archive.json changed."""
    with zipfile.ZipFile(packed) as file:
        members = [(info, file.read(info)) for info in file.infolist()]
    contents = json.loads(members[0][1])
    change(members, contents)
    members[0] = (members[0][0], json.dumps(contents).encode())
    with zipfile.ZipFile(path, "w") as file:
        for info, data in members:
            file.writestr(info, data)
    return path


def add(name: str, data: bytes = b"x", listed: bool = True, **header: int) -> Change:
    def change(members: list[tuple[zipfile.ZipInfo, bytes]], contents: dict[str, Any]) -> None:
        info = member(name)
        for key, value in header.items():
            setattr(info, key, value)
        members.append((info, data))
        if listed:
            digest = hashlib.sha256(data).hexdigest()
            contents["files"][name] = {"bytes": len(data), "sha256": digest}

    return change


def remove_list(_: list[tuple[zipfile.ZipInfo, bytes]], contents: dict[str, Any]) -> None:
    contents.clear()


def newer_format(_: list[tuple[zipfile.ZipInfo, bytes]], contents: dict[str, Any]) -> None:
    contents["format"] = 2


def other_digest(_: list[tuple[zipfile.ZipInfo, bytes]], contents: dict[str, Any]) -> None:
    contents["files"]["config.toml"]["sha256"] = "0" * 64


HOSTILE: dict[str, tuple[Change, str]] = {
    "parent folder": (add("../evil"), "not a plain relative path"),
    "parent folder inside": (add("text/../../evil"), "not a plain relative path"),
    "absolute": (add("/tmp/evil"), "not a plain relative path"),
    "drive": (add("C:evil"), "not a plain relative path"),
    "backslash": (add("..\\evil"), "not a plain relative path"),
    "empty part": (add("text//evil"), "not a plain relative path"),
    "symbolic link": (
        add("link", b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16),
        "not an ordinary file",
    ),
    "device": (add("device", external_attr=(stat.S_IFCHR | 0o644) << 16), "not an ordinary file"),
    "folder": (add("folder/", b""), "not a plain relative path"),
    "file and folder": (add("text"), "is a file and a folder"),
    "same name": (add("config.toml"), "two members have the same name"),
    "same name in capitals": (add("CONFIG.toml"), "two members have the same name"),
    "not listed": (add("extra", listed=False), "members differ from the list"),
    "compressed": (
        add("bomb", bytes(10**6), compress_type=zipfile.ZIP_DEFLATED),
        "larger than the file itself",
    ),
    "slightly compressed": (
        add("bomb", bytes(100), compress_type=zipfile.ZIP_DEFLATED),
        "is compressed or encrypted",
    ),
    "no list": (remove_list, "is damaged"),
    "newer format": (newer_format, "pip install --upgrade seqloom"),
    "other digest": (other_digest, "does not have the SHA-256"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_rejected_and_writes_nothing_outside(
    name: str, packed: Path, tmp_path: Path
) -> None:
    change, message = HOSTILE[name]
    path = rewrite(packed, tmp_path / "file", change)
    (tmp_path / "in" / "here").mkdir(parents=True)
    before = {*tmp_path.rglob("*")}
    with pytest.raises(StorageError, match=message):
        extract(path, tmp_path / "in" / "here")
    outside = {each for each in tmp_path.rglob("*") if tmp_path / "in" / "here" not in each.parents}
    assert outside == before
    with pytest.raises(StorageError, match=message):
        open_run(path)
    with pytest.raises(StorageError, match=message):
        unpack_run(path, tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def test_the_number_of_members_is_limited(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 5)
    with pytest.raises(StorageError, match="more than 5"):
        extract(packed, tmp_path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_rejected(packed: Path, tmp_path: Path, share: float) -> None:
    data = packed.read_bytes()
    (tmp_path / "cut").write_bytes(data[: int(share * len(data))])
    with pytest.raises(StorageError, match="is damaged"):
        extract(tmp_path / "cut", tmp_path)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
def test_a_changed_bit_is_found_or_changes_no_file(
    packed: Path, tmp_path: Path, place: float, bit: int
) -> None:
    """Some bits of a zip archive, such as times, have no effect on the content."""
    data = bytearray(packed.read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    (tmp_path / "flipped").write_bytes(data)
    folder = tmp_path / "folder"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        extract(tmp_path / "flipped", folder)
    except StorageError:
        return
    with zipfile.ZipFile(packed) as file:
        expected = {name: file.read(name) for name in file.namelist() if name != CONTENTS}
    written = {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }
    assert written == expected


def test_only_files_that_start_like_a_packed_run_are_opened(packed: Path, tmp_path: Path) -> None:
    assert is_packed_run(packed)
    assert not is_packed_run(tmp_path)
    assert not is_packed_run(tmp_path / "nothing")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as file:
        file.writestr("a.txt", "text")
    assert not is_packed_run(tmp_path / "other.zip")
    assert open_run(tmp_path / "other.zip") == tmp_path / "other.zip"


def test_a_damaged_copy_in_the_cache_says_what_to_remove(packed: Path) -> None:
    folder = open_run(packed)
    config = folder / "config.toml"
    config.write_bytes(config.read_bytes().replace(b"seed", b"sEed"))
    with pytest.raises(StorageError, match=r"Remove .*extracted again"):
        seqloom.load(packed)
    shutil.rmtree(folder.parent)
    assert seqloom.load(packed).translate(["ab"])
