"""Packed runs: a run folder in one file, for prediction and evaluation.

    archive.json     format version, and the size and SHA-256 of every other member
    config.toml      and other files of the run folder, without checkpoints and converted models

A packed run is a zip archive whose members are stored without compression. Packing the same run
twice gives the same bytes. The file may come from a stranger, so `extract` trusts nothing in it:
every member must be listed in archive.json with its digest, have a plain relative name, and be an
ordinary uncompressed file. Without compression, the members together cannot be larger than the
file itself.

A packed run is loaded from a copy in the user's cache, which is extracted once per file.
"""

import hashlib
import json
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.core.storage import (
    MANIFEST,
    TEMPORARY_PREFIX,
    make_folder,
    publish,
    remove_leftovers_of_ended_processes,
    sha256,
    storage_errors,
    temporary_path,
)
from seqloom.data.corpus.disk_cache import cache_root, cached_folder
from seqloom.runs.extensions import EXTENSIONS
from seqloom.runs.integrity import (
    CONFIG,
    EVALUATION,
    EVENT_LOG,
    is_run,
    read_pointers,
    run_damage,
    weights_store,
)

CONTENTS = "archive.json"
FORMAT = 1
"""Version of the archive format. Increase it when older versions of seqloom cannot read it."""
MAX_MEMBERS = 10_000
MAX_CONTENTS_BYTES = 2**24
"""Maximum size of archive.json."""
DATE = (1980, 1, 1, 0, 0, 0)
"""Modification time of all members. A fixed time makes the bytes reproducible."""
CACHE = "runs"
BLOCK = 2**20


def pack_run(folder: Path, path: Path) -> None:
    """Write a run folder to one file. An existing file is replaced.

    The file contains no checkpoints, which are needed only to resume training, and no models that
    were converted for another engine.
    """
    before = read_pointers(folder)
    if problems := run_damage(folder):
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise StorageError(
            f"{folder}: is damaged and cannot be packed:\n{listed}\nRestore it from a backup."
        )
    files = {str(file.relative_to(folder)): file for file in _files_to_pack(folder)}
    contents: dict[str, dict[str, Any]] = {
        name: {"bytes": file.stat().st_size, "sha256": sha256(file)}
        for name, file in sorted(files.items())
    }
    temporary = temporary_path(path)
    with storage_errors(path):
        make_folder(path.parent)
        remove_leftovers_of_ended_processes(path)
        try:
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
                text = json.dumps({"format": FORMAT, "files": contents}, indent=1)
                archive.writestr(_member(CONTENTS), text)
                for name, entry in contents.items():
                    info = _member(name, entry["bytes"])
                    with files[name].open("rb") as source, archive.open(info, "w") as out:
                        shutil.copyfileobj(source, out, BLOCK)
            _check_members(temporary)
            if read_pointers(folder) != before:
                raise StorageError(
                    f"{folder}: training has changed this run while it was packed. Pack it again."
                )
            publish(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _files_to_pack(folder: Path) -> Iterator[Path]:
    weights = weights_store(folder).current_path()
    if weights is None:
        raise NotFoundError(
            f"{folder}: has no weights yet, because training has not reached its first "
            f"evaluation. Continue it with `seqloom train {folder} --resume`"
        )
    single = (CONFIG, MANIFEST, EXTENSIONS, EVENT_LOG, weights_store(folder).pointer.name)
    yield from (folder / name for name in single if (folder / name).is_file())
    for part in (folder / "text", weights, folder / EVALUATION, folder / "alignment"):
        for file in sorted(part.rglob("*")):
            if file.is_file() and not any(
                name.startswith(TEMPORARY_PREFIX) for name in file.relative_to(folder).parts
            ):
                yield file


def _member(name: str, size: int = 0) -> zipfile.ZipInfo:
    """Return the zip header of a member, with a fixed date and no data about this system."""
    info = zipfile.ZipInfo(name, DATE)
    info.file_size = size  # decides whether the header needs 64-bit sizes
    info.create_system = 3  # Unix, on every system
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


def is_packed_run(path: Path) -> bool:
    """True if the path is a zip file whose first member is archive.json, as in every packed run.

    The rest of the file is not read and may be damaged.
    """
    try:
        with path.open("rb") as file:
            start = file.read(30 + len(CONTENTS))
    except OSError:
        return False
    return start.startswith(b"PK\x03\x04") and start[30:] == CONTENTS.encode()


def open_run(path: Path) -> Path:
    """Return the run folder at this path. For a packed run, return its extracted copy.

    Any other path is returned unchanged, even if nothing exists there. Loading the run from it then
    raises an error.
    """
    if path.is_dir() or not is_packed_run(path):
        return path
    with storage_errors(path):
        digest = sha256(path)
    name = path.stem or "run"

    def fill(folder: Path) -> None:
        (folder / name).mkdir()
        extract(path, folder / name)

    # The name is part of the key, because messages show the name of the extracted folder.
    key = hashlib.sha256(f"{digest} {name}".encode()).hexdigest()
    return cached_folder(CACHE, key, fill) / name


def is_extracted(folder: Path) -> bool:
    """True if a run folder is in the cache, to which seqloom extracts packed runs."""
    return folder.resolve().is_relative_to((cache_root() / CACHE).resolve())


def unpack_run(path: Path, folder: Path) -> None:
    """Extract a packed run to a new folder."""
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file. Give a file that `seqloom pack` wrote.")
    if not is_packed_run(path):
        raise NotFoundError(f"{path}: is not a packed run. Give a file that `seqloom pack` wrote.")
    if folder.exists():
        raise ConfigError(f"{folder}: exists already. Choose another folder.")
    temporary = temporary_path(folder)
    with storage_errors(folder):
        make_folder(folder.parent)
        remove_leftovers_of_ended_processes(folder)
        temporary.mkdir()
        try:
            extract(path, temporary)
            publish(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def extract(path: Path, folder: Path) -> None:
    """Check a packed run and write its files to an existing, empty folder.

    Raises a StorageError if anything in the file is not as `pack_run` writes it.
    """
    contents = _check_members(path)
    try:
        with zipfile.ZipFile(path) as archive:
            for name, entry in contents.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy_member(archive, name, entry["sha256"], target, path)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    if not is_run(folder):
        raise _damaged(path, f"it contains no {CONFIG}")


def _copy_member(
    archive: zipfile.ZipFile, name: str, expected: str, target: Path, path: Path
) -> None:
    digest = hashlib.sha256()
    with archive.open(name) as source, target.open("wb") as out:
        while block := source.read(BLOCK):
            digest.update(block)
            out.write(block)
    if digest.hexdigest() != expected:
        raise _damaged(path, f"the content of '{name}' does not have the SHA-256 in {CONTENTS}")


def _check_members(path: Path) -> dict[str, dict[str, Any]]:
    """Check the names and sizes of the members of a packed run, without reading their content.

    Returns the list of members in archive.json: {name: {"bytes": size, "sha256": digest}}
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if problem := _member_problem(members, path.stat().st_size):
                raise _damaged(path, problem)
            contents = json.loads(archive.read(CONTENTS))
            version = contents["format"]
            if isinstance(version, int) and version > FORMAT:
                raise StorageError(
                    f"{path}: was written by a newer version of seqloom (archive format {version}, "
                    f"this version reads {FORMAT}). Upgrade seqloom: pip install --upgrade seqloom"
                )
            files = contents["files"]
            listed = {name: entry["bytes"] for name, entry in files.items()}
            digests_are_text = all(isinstance(entry["sha256"], str) for entry in files.values())
    except (
        *(zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError),
        *(ValueError, KeyError, TypeError, AttributeError, RecursionError),
    ) as error:
        raise _damaged(path, str(error)) from error
    sizes = {member.filename: member.file_size for member in members}
    del sizes[CONTENTS]
    if version != FORMAT or not digests_are_text or sizes != listed:
        raise _damaged(path, f"its members differ from the list in {CONTENTS}")
    return dict(files)


def _member_problem(members: list[zipfile.ZipInfo], archive_bytes: int) -> str | None:
    """Describe a problem that makes the members of a zip file unsafe or invalid.

    Returns None if there is no problem.

    archive_bytes: size of the zip file
    """
    names = [member.filename for member in members]
    if len(members) > MAX_MEMBERS:
        return f"it has {len(members):,} members, more than {MAX_MEMBERS:,}"
    if CONTENTS not in names:
        return f"it contains no {CONTENTS}"
    if len({name.casefold() for name in names}) < len(names):
        return "two members have the same name"
    if sum(member.file_size for member in members) > archive_bytes:
        return "its members are larger than the file itself"
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    for member in members:
        name = member.filename
        parts = name.split("/")
        if "\\" in name or ":" in name or any(part in ("", ".", "..") for part in parts):
            return f"the member name {name!r} is not a plain relative path"
        if name in folders:
            return f"the member {name!r} is a file and a folder"
        mode = member.external_attr >> 16
        if member.is_dir() or not stat.S_ISREG(mode):
            return f"the member {name!r} is not an ordinary file"
        is_stored = member.compress_type == zipfile.ZIP_STORED
        if not is_stored or member.file_size != member.compress_size or member.flag_bits & 1:
            return f"the member {name!r} is compressed or encrypted"
        if name == CONTENTS and member.file_size > MAX_CONTENTS_BYTES:
            return f"{CONTENTS} has {member.file_size:,} bytes, more than {MAX_CONTENTS_BYTES:,}"
    return None


def _damaged(path: Path, problem: str) -> StorageError:
    return StorageError(
        f"{path}: is damaged, or `seqloom pack` did not write it: {problem}. Copy the file again, "
        "or pack the run folder again."
    )
