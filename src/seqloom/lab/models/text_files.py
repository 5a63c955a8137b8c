"""Corpora of the experiments, written as text files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from seqloom.core.storage import atomic_file, storage_errors


def write_lines(folder: Path, files: Mapping[str, Sequence[str]]) -> None:
    """Write files of one line per sentence. Other processes see complete files only."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        with atomic_file(folder / name) as temporary:
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
