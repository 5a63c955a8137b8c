"""Recognises files and folders that users give by mistake instead of a recipe, a run folder or a
text file."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

OFFICE_FILES = {
    "word/document.xml": ("a Word document", "save it as plain text in UTF-8"),
    "xl/workbook.xml": ("an Excel workbook", "save it as CSV in UTF-8"),
    "ppt/presentation.xml": ("a PowerPoint presentation", "save its text as a UTF-8 text file"),
    "content.xml": ("an OpenDocument file", "save it as plain text or CSV in UTF-8"),
}
"""Maps the name of a file inside a zip archive to the office format that this file identifies: the
name of the format, and what to do."""
ZSTD_SIGNATURE = b"\x28\xb5\x2f\xfd"
PARQUET_SIGNATURE = b"PAR1"
SIGNATURES = {
    b"%PDF": ("a PDF file", "save its text as a UTF-8 text file"),
    ZSTD_SIGNATURE: ("compressed with zstd", "unpack it with: zstd -d"),
    b"BZh": ("compressed with bzip2", "unpack it with: bunzip2"),
    b"\xfd7zXZ": ("compressed with xz", "unpack it with: unxz"),
    b"Rar!": ("a RAR archive", "unpack it"),
    b"7z\xbc\xaf": ("a 7z archive", "unpack it"),
}
"""Maps the first bytes of a file to the name of its format, and what to do."""
ZIP_SIGNATURE = b"PK\x03\x04"
IMPORTABLE = ("marian", "m2m_100")
"""The values of model_type in config.json that `seqloom import` supports."""


@dataclass(frozen=True)
class FileKind:
    """The kind of a file or folder.

    name:   for example "a Word document"
    advice: what to do with it, for example "save it as plain text in UTF-8"
    """

    name: str
    advice: str


def recognise(path: Path) -> FileKind | None:
    """Return the kind of a file or folder that the user gave by mistake, such as a PDF file.

    Returns None for all other files and folders, for example recipes, run folders and text files.
    """
    if path.is_dir():
        return _recognise_folder(path)
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError:
        return None
    if start.startswith(ZIP_SIGNATURE):
        return _recognise_zip(path)
    for signature, (name, advice) in SIGNATURES.items():
        if start.startswith(signature):
            return FileKind(name, advice)
    return None


def _recognise_zip(path: Path) -> FileKind | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return FileKind("a damaged zip archive", "copy or download it again")
    for member, (name, advice) in OFFICE_FILES.items():
        if member in names:
            return FileKind(name, advice)
    count = "1 file" if len(names) == 1 else f"{len(names):,} files"
    return FileKind(f"a zip archive with {count}", "unpack it")


def _recognise_folder(path: Path) -> FileKind | None:
    if is_saved_dataset(path):
        return FileKind("a Hugging Face dataset", "name it in a recipe")
    train_first = "give a folder that `seqloom train` wrote"
    if (path / "model.bin").is_file() and (path / "config.json").is_file():
        return FileKind("a CTranslate2 model", train_first)
    try:
        settings = json.loads((path / "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    if isinstance(settings, dict) and ("model_type" in settings or "architectures" in settings):
        model_type = settings.get("model_type", "unknown type")
        advice = train_first
        if model_type in IMPORTABLE:
            advice = f"import it with `seqloom import {path} --run runs/{path.name}`"
        return FileKind(f"a Hugging Face model ({model_type})", advice)
    return None


def is_saved_dataset(folder: Path) -> bool:
    """Return True if `save_to_disk` of the package `datasets` wrote this folder."""
    return any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))
