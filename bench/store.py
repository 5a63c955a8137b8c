"""Stored results: one JSON file per study or program, with one line per measurement.

bench/store is part of the repository and the source of all tables in docs. New measurements go to
bench/results unless `--out` names another folder.
"""

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STORE = ROOT / "bench" / "store"
RESULTS = ROOT / "bench" / "results"
Record = dict[str, Any]
"""The result of a job of a study."""


def read(name: str, folder: Path = STORE) -> Any:
    """The stored result of a study or program. None if there is none."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write(name: str, content: Any, folder: Path = STORE) -> Path:
    """Replace the stored result."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(format_json(content), encoding="utf-8")
    temporary.rename(path)
    return path


def format_json(content: Any) -> str:
    """JSON with one line for each element of the outer list or object."""
    if isinstance(content, list):
        lines = [_format_line(each) for each in content]
        return "[\n" + ",\n".join(lines) + "\n]\n"
    lines = [f"{_format_line(key)}: {_format_line(value)}" for key, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _format_line(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def add(name: str, record: Record, folder: Path) -> None:
    """Add the record of a job, or replace the one with the same key. Processes take turns."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        records = [each for each in read(name, folder) or [] if key_of(each) != key_of(record)]
        write(name, sorted([*records, record], key=_order), folder)


def key_of(record: Record) -> tuple[str, str, int | None]:
    return record["recipe"], record["change"], record["seed"]


def _order(record: Record) -> tuple[str, str, float]:
    recipe, change, seed = key_of(record)
    return recipe, change, float("inf") if seed is None else seed


def select(records: Sequence[Record], recipe: str, change: str) -> list[Record]:
    """The records of a recipe and change, one per seed, without that of the ensemble."""
    return [
        each
        for each in records
        if key_of(each)[:2] == (recipe, change) and each["seed"] is not None
    ]
