"""One JSON object a line."""

import json
from collections.abc import Iterator
from typing import Any

from seqloom.config.schema.corpora import JsonlConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines


def read_jsonl(config: JsonlConfig, folder: str, table: str) -> Iterator[Example]:
    """{"src": …, "tgt": …} or {"translation": {"de": …, "en": …}}; a target may be a list, and a
    source too if the recipe says how to join it.

    `table` is what the recipe calls this corpus, for errors.
    """
    path = locate(config.path, folder)
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        record = _parse(line, where)
        source = _source(record, config, where, table)
        target = _look_up(record, config.target, where, f"{table}.target")
        targets = target if isinstance(target, list) else [target]
        if not isinstance(source, str) or not all(isinstance(text, str) for text in targets):
            raise DataError(
                f"{where}: '{config.source}' must be a string and '{config.target}' a string or "
                f"a list of strings, not {_shown(source)} and {_shown(target)}{_hint(source, table)}"
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


def _source(record: dict[str, Any], config: JsonlConfig, where: str, table: str) -> Any:
    """What is read: of two keys the first that is there, a list of strings as one string."""
    fallback = config.source_fallback
    if fallback is not None and _is_missing(record, config.source):
        source = _look_up(record, fallback, where, f"{table}.source_fallback")
    else:
        source = _look_up(record, config.source, where, f"{table}.source")
    parts = source if isinstance(source, list) else None
    if config.source_joiner is None or parts is None:
        return source
    return config.source_joiner.join(parts) if all(isinstance(p, str) for p in parts) else source


def _is_missing(record: dict[str, Any], key: str) -> bool:
    nested = record.get("translation")
    inside = nested if isinstance(nested, dict) else {}
    return record.get(key, inside.get(key.removeprefix("translation."))) is None


def _hint(source: Any, table: str) -> str:
    """What to do about a source that is a list of strings, or nothing at all."""
    if source is None:
        return f"; {table}.source_fallback names another key to read then"
    if isinstance(source, list) and all(isinstance(part, str) for part in source):
        return f'; {table}.source_joiner = " " joins the list'
    return ""


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
