"""Checks data files: compares them with the files that a recipe expects, and finds those that have
changed since they were last prepared.

The digests that this module stores serve only to tell the user which files have changed. Even without
them, outdated prepared data would never be used, because the cache key of prepared data depends on the
contents of the data files.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from seqloom.config.schema.data import DataConfig, ExpectedFileConfig
from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import write_file
from seqloom.data.corpus.digests import file_digest, json_digest
from seqloom.data.corpus.disk_cache import cache_root
from seqloom.data.example import Split
from seqloom.data.readers.splits import readers_of, split_files

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@dataclass(frozen=True)
class FileState:
    """An expected file, and what was found in the data folder.

    found: size of the file in bytes; None if the file is missing
    """

    expected: ExpectedFileConfig
    found: int | None

    @property
    def is_different(self) -> bool:
        return self.found is not None and self.found != self.expected.bytes

    def describe(self) -> str:
        state = "missing" if self.found is None else "found"
        if self.is_different:
            state = f"found, but with {self.found:,} bytes"
        return f"  {self.expected.file}  {self.expected.bytes:,} bytes  {state}"


def check_expected_files(data: DataConfig) -> str | None:
    """Return a warning that lists the files with an unexpected size.

    Return None if all sizes are as expected, or if the recipe does not list expected files. If
    files are missing, raise a NotFoundError that lists all expected files.
    """
    if data.expected is None:
        return None
    states = _file_states(data)
    folder = Path(data.folder).expanduser().absolute()
    listed = "\n".join(state.describe() for state in states)
    origin = f"Data set: {data.expected.source}. Licence: {data.expected.licence}."
    missing = sum(state.found is None for state in states)
    if missing:
        raise NotFoundError(
            f"{folder}: {missing} of the {len(states)} files that the recipe needs are missing:\n"
            f"{listed}\n{origin}\nGive the folder that contains them: --set data.folder=PATH"
        )
    different = [state for state in states if state.is_different]
    if not different:
        return None
    return (
        f"{folder}: {len(different)} of {len(states)} files have another size than the recipe "
        "expects, so its scores may not be reached:\n"
        + "\n".join(state.describe() for state in different)
        + f"\n{origin}"
    )


def _file_states(data: DataConfig) -> list[FileState]:
    """Return the state of each expected file that the corpora of the recipe use."""
    assert data.expected is not None
    used: set[str] = set()
    for reader in (reader for split in SPLITS for reader in readers_of(data, split)):
        names = reader.used_files
        used |= {each.file for each in data.expected.files} if names is None else {*names}
    folder = Path(data.folder).expanduser()
    return [
        FileState(
            each, (folder / each.file).stat().st_size if (folder / each.file).is_file() else None
        )
        for each in data.expected.files
        if each.file in used or any(fnmatchcase(each.file, pattern) for pattern in used)
    ]


PREPARED_SPLITS: tuple[Split, ...] = ("train", "dev")


def changed_inputs(data: DataConfig) -> list[str]:
    """Return the paths of the text files that have changed since they were last prepared.

    The list is empty if this set of files has not been prepared yet.
    """
    now = _digests(data)
    return [path for path, digest in _recorded(now).items() if now.get(path) != digest]


def remember_inputs(data: DataConfig) -> None:
    """Record the digests of the text files. Call this function after preparing the files."""
    now = _digests(data)
    if now and _recorded(now) != now:
        record = _record(now)
        # If the cache folder is not writable, `build_corpus` has reported it.
        with suppress(OSError, StorageError):
            record.parent.mkdir(parents=True, exist_ok=True)
            write_file(record, json.dumps(now).encode())


def _digests(data: DataConfig) -> dict[str, str]:
    """Return the SHA-256 of each text file of the training and dev splits."""
    paths = [path for split in PREPARED_SPLITS for path in split_files(data, split)]
    return {str(path.absolute()): file_digest(path) for path in paths}


def _record(digests: dict[str, str]) -> Path:
    """Return the path of the file that records the digests of a set of data files.

    This path depends only on the paths of the data files, which are the keys of `digests`.
    """
    return cache_root() / "inputs" / json_digest(sorted(digests))


def _recorded(digests: dict[str, str]) -> dict[str, str]:
    try:
        recorded = json.loads(_record(digests).read_bytes())
    except (OSError, ValueError):
        return {}
    return recorded if isinstance(recorded, dict) else {}
