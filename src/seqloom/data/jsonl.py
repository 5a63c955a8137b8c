"""One JSON object a line."""

import json
from collections.abc import Iterator
from typing import Any

from seqloom.config.data import JsonlConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines


def read_jsonl(config: JsonlConfig, folder: str) -> Iterator[Example]:
    """{"src": …, "tgt": …} or {"translation": {"de": …, "en": …}}; a target may be a list."""
    path = locate(config.path, folder)
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        record = _parse(line, where)
        source = _look_up(record, config.source, where)
        target = _look_up(record, config.target, where)
        targets = target if isinstance(target, list) else [target]
        if not isinstance(source, str) or not all(isinstance(text, str) for text in targets):
            raise DataError(
                f"{where}: '{config.source}' must be a string and '{config.target}' a string or "
                f"a list of strings, not {_shown(source)} and {_shown(target)}"
            )
        if not targets:
            raise DataError(
                f"{where}: '{config.target}' is an empty list; give one target at least"
            )
        _refuse_broken_unicode([source, *targets], where)
        yield Example(source, targets[0], tuple(targets), where)


def _parse(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        there = "an empty line" if not line.strip() else _shown(line)
        raise DataError(
            f"{where}: is not JSON: {error.msg} at character {error.colno} of {there}"
        ) from error
    except (RecursionError, ValueError) as error:
        raise DataError(f"{where}: is not usable JSON: nested too deeply or too large") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: must be a JSON object, {{…}}, not {_shown(record)}")
    return record


def _look_up(record: dict[str, Any], key: str, where: str) -> Any:
    if key in record:
        return record[key]
    nested = record.get("translation")
    if isinstance(nested, dict) and key in nested:
        return nested[key]
    keys = [*record, *(f"translation.{name}" for name in nested or () if isinstance(nested, dict))]
    raise DataError(
        f"{where}: there is no '{key}', only {', '.join(map(repr, keys)) or 'an empty object'}; "
        "set the keys with data.….source and data.….target"
    )


def _refuse_broken_unicode(texts: list[str], where: str) -> None:
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"{where}: character {error.start + 1} is half of a surrogate pair, "
                "which is not valid Unicode; write the character itself"
            ) from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
