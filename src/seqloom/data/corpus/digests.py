"""Digests of files and of JSON values. The digest of a large file is cached until the file changes."""

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqloom.core.errors import StorageError
from seqloom.core.storage import sha256, write_file
from seqloom.data.corpus.disk_cache import cache_root

MIN_CACHED_BYTES = 2**24
"""Minimum size of a file whose digest is cached."""
MIN_AGE = 2.0
"""The digest of a file is cached only if the file last changed more than this number of seconds
ago. If a file changes twice in quick succession, both changes can have the same timestamp, so the
second change would not be detected."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    The digest of a large file is cached under its size, device, inode, modification time and
    status change time. Programs cannot set the status change time, so it reveals every change.
    """
    status = os.stat(path)
    if status.st_size < MIN_CACHED_BYTES:
        return sha256(path)
    identity = [
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    ]
    name = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    cache_file = cache_root() / "digests" / name
    try:
        cached = cache_file.read_text()
    except OSError:
        cached = ""
    if len(cached) == hashlib.sha256().digest_size * 2:
        return cached
    is_settled = time.time() - max(status.st_mtime, status.st_ctime) > MIN_AGE
    digest = sha256(path)
    if is_settled:
        # If the cache folder is not writable, ignore the error here. `build_corpus` reports it.
        with suppress(OSError, StorageError):
            cache_file.parent.mkdir(parents=True, exist_ok=True)
            write_file(cache_file, digest.encode())
    return digest


def json_digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
