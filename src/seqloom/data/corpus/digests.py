"""SHA-256 digests of files. Digests of large files are cached until the file changes."""

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from seqloom.core.errors import StorageError
from seqloom.core.storage import sha256, write_file
from seqloom.data.corpus.cache import cache_root

MIN_CACHED_BYTES = 2**24
"""Digests of smaller files are not cached."""
MIN_AGE = 2.0
"""Seconds since its last change after which a file's timestamps reveal any later change."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    The digest of a large file is cached under its size, device, inode, modification time and
    status change time. User programs cannot set the last one.
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
        # A cache that cannot be written is reported when the corpus is built.
        with suppress(OSError, StorageError):
            cache_file.parent.mkdir(parents=True, exist_ok=True)
            write_file(cache_file, digest.encode())
    return digest
