"""Finds data files that have changed since they were last prepared.

This module stores a digest of each file. The digests serve only to tell the user which files have
changed. Even without them, outdated prepared data would never be used, because the cache key of
prepared data depends on the contents of the data files.
"""

import json
from contextlib import suppress
from pathlib import Path

from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import StorageError
from seqloom.core.storage import write_file
from seqloom.data.corpus.digests import file_digest, json_digest
from seqloom.data.corpus.disk_cache import cache_root
from seqloom.data.example import Split
from seqloom.data.readers.splits import split_files

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
