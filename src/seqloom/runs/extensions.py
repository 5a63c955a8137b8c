"""Records the extensions of a run, and checks at loading whether their code has changed.

An extension is Python code outside seqloom that a recipe names.

    extensions.json   one object per extension: its setting, its kind, and where its code comes from

The file is written only if the recipe contains extensions. It contains no code. Loading a run
imports the extensions from the Python path and never from the run folder.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError
from seqloom.extensions.identity import extension_version

EXTENSIONS = "extensions.json"

Records = list[dict[str, Any]]


def write_extensions(folder: Path, config: RunConfig) -> None:
    """Write extensions.json, which describes the extensions of a recipe.

    Writes nothing if the recipe has no extensions.
    """
    if records := _current_records(config):
        text = json.dumps(records, ensure_ascii=False, indent=1)
        (folder / EXTENSIONS).write_text(text, encoding="utf-8")


def extension_changes(folder: Path, config: RunConfig) -> list[str]:
    """Return a note about each extension whose code differs from the code at training."""
    saved = {(record["setting"], record["kind"]): record for record in _read(folder)}
    changes = []
    for record in _current_records(config):
        before = saved.get((record["setting"], record["kind"]))
        if before is not None and before["sha256"] != record["sha256"]:
            versions = sorted({before["distribution"], record["distribution"]} - {""})
            package = f" (trained with {before['distribution']}, now {record['distribution']})"
            changes.append(
                f"{record['setting']}: the source code of {record['module']}, which defines "
                f"'{record['kind']}', has changed since this run was trained"
                f"{package if len(versions) > 1 else ''}; outputs may differ"
            )
    return changes


def with_extensions_of_run(error: ConfigError, folder: Path) -> ConfigError:
    """Return the error with a list of the extensions that the run was trained with.

    error: says why the recipe of the run cannot be loaded
    """
    records = _read(folder)
    if not records:
        return error
    lines = [
        f"  {record['setting']}: {record['module']}:{record['name']}"
        + (f", from {record['distribution']}" if record["distribution"] else "")
        for record in records
    ]
    return ConfigError(
        "\n".join([str(error), "This run was trained with these extensions:", *lines])
    )


def _current_records(config: RunConfig) -> Records:
    return [
        {
            "setting": setting,
            "kind": extension.kind,
            **asdict(extension_version(extension.extension_target)),
        }
        for setting, extension in config.extensions.items()
    ]


def _read(folder: Path) -> Records:
    path = folder / EXTENSIONS
    records: Records = json.loads(path.read_bytes()) if path.is_file() else []
    return records
