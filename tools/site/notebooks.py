"""Converts the notebooks of the course to .ipynb files, for readers to download."""

import shutil
from pathlib import Path

import jupytext

from tools.site.links import DOCS

FOLDER = DOCS / "generated" / "notebooks"


def is_notebook(path: Path) -> bool:
    """True if a page is a notebook: its header names a kernel."""
    header = path.read_text(encoding="utf-8").partition("\n---\n")[0]
    return header.startswith("---\n") and "kernelspec:" in header


def write_notebooks() -> None:
    """Write one .ipynb file, without outputs, for each notebook of the course."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for path in sorted((DOCS / "course").glob("*.md")):
        if is_notebook(path):
            FOLDER.mkdir(parents=True, exist_ok=True)
            jupytext.write(jupytext.read(path), FOLDER / f"{path.stem}.ipynb")
