"""One JSON object a line."""

import json
from collections.abc import Iterator
from typing import Any

from seqloom.config.data import JsonlConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines


def read_jsonl(config: JsonlConfig, folder: str, table: str) -> Iterator[Example]:
    """{"src": …, "tgt": …} or {"translation": {"de": …, "en": …}}; a target may be a list.

    `table` is what the recipe calls this corpus, for errors.
    """
    path = locate(config.path, folder)
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        record = _parse(line, where)
        source = _look_up(record, config.source, where, f"{table}.source")
        target = _look_up(record, config.target, where, f"{table}.target")
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


def _look_up(record: dict[str, Any], key: str, where: str, setting: str) -> Any:
    """The value of a key of the object or of its "translation", whose keys may be dotted."""
    if key in record:
        return record[key]
    nested = record.get("translation")
    inside = nested if isinstance(nested, dict) else {}
    name = key.removeprefix("translation.")
    if name in inside:
        return inside[name]
    keys = [one for one in record if not (one == "translation" and inside)]
    keys += [f"translation.{one}" for one in inside]
    example = f"; for example {setting} = {json.dumps(keys[0], ensure_ascii=False)}" if keys else ""
    raise DataError(
        f"{where}: there is no '{key}', only {', '.join(map(repr, keys)) or 'an empty object'}; "
        f"say with {setting} which one to read{example}"
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
