"""SHA-256 of large files, remembered for as long as nobody has touched them."""

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from seqloom.core.errors import StorageError
from seqloom.core.storage import sha256, write_file
from seqloom.data.cache import cache_root

LARGE = 2**24
"""Bytes. A smaller file is read again rather than remembered."""
SETTLED = 2.0
"""Seconds since its last change from which a file's times tell a later change apart."""


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content.

    A large file is read once and then known by its size, its place on the disk and the times of
    its last changes, the second of which nobody can set.
    """
    facts = os.stat(path)
    if facts.st_size < LARGE:
        return sha256(path)
    marks = [facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]
    name = hashlib.sha256(json.dumps(marks).encode()).hexdigest()
    memory = cache_root() / "digests" / name
    try:
        known = memory.read_text()
    except OSError:
        known = ""
    if len(known) == hashlib.sha256().digest_size * 2:
        return known
    settled = time.time() - max(facts.st_mtime, facts.st_ctime) > SETTLED
    digest = sha256(path)
    if settled:
        # To remember is a convenience: a cache that cannot be written is told of elsewhere.
        with suppress(OSError, StorageError):
            memory.parent.mkdir(parents=True, exist_ok=True)
            write_file(memory, digest.encode())
    return digest
