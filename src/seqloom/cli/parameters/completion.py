"""Shell completion of recipe names and run folders. Needs no torch."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from seqloom.config.loading.bundled import bundled_recipes

RUNS = Path("runs")
"""Folder in which `seqloom train` writes runs by default."""


def complete_recipe(incomplete: str) -> list[str]:
    """Return the bundled recipes, recipe files and folders whose names start with `incomplete`.

    Folders that are not runs end in a separator, so that the user can complete them further.
    """
    names = (name for name in sorted(bundled_recipes()) if name.startswith(incomplete))
    return [*names, *_paths(incomplete, lambda path: path.suffix == ".toml" or _is_run(path))]


def complete_run(incomplete: str) -> list[str]:
    """Return run folders and other folders that start with the given text.

    If the text is empty, the runs in the folder `runs` come first. Folders that are not runs end in
    a separator, so that the user can complete them further.
    """
    usual = [] if incomplete else _paths(f"{RUNS}{os.sep}", _is_run)
    return [*usual, *_paths(incomplete, _is_run)]


def _paths(incomplete: str, is_complete: Callable[[Path], bool]) -> Iterator[str]:
    """Yield paths that start with the given text, and for which `is_complete` returns True.

    Also yields all other folders that start with the text, with a separator at the end.
    """
    parent, prefix = os.path.split(incomplete)
    folder = Path(parent or ".")
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith(prefix) and (prefix or not path.name.startswith(".")):
            name = os.path.join(parent, path.name)
            if is_complete(path):
                yield name
            elif path.is_dir():
                yield f"{name}{os.sep}"


def _is_run(path: Path) -> bool:
    return (path / "config.toml").is_file()
