"""Compares the data folder with the files that a recipe expects."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from seqloom.config.schema.data import DataConfig, ExpectedFileConfig
from seqloom.core.errors import NotFoundError
from seqloom.data.example import Split
from seqloom.data.readers.splits import readers_of

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
