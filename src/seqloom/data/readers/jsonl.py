"""Reads JSON Lines files: one JSON object per line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seqloom.config.schema.corpora import JsonlConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.text_files import locate_all, read_lines_or_problems, shorten


def read_jsonl(config: JsonlConfig, folder: str, table: str) -> Iterator[Example | InvalidLine]:
    """Yield one example per line, or a problem.

    A line is {"src": …, "tgt": …} or {"translation": {"de": …, "en": …}}.

    A target may be a list of strings: the first string becomes the target, and all strings become
    references. A source may be a list of strings if the recipe sets `source_joiner`.

    table: the corpus' table in the recipe, such as "data.train[1]", for error messages
    """
    for path in locate_all(config.path, folder):
        yield from _read_file(path, config, table)


def _read_file(path: Path, config: JsonlConfig, table: str) -> Iterator[Example | InvalidLine]:
    for number, line in enumerate(read_lines_or_problems(path), start=1):
        if isinstance(line, InvalidLine):
            yield line
            continue
        where = f"{path}:{number}"
        try:
            yield _example(line, where, config, table)
        except DataError as error:
            problem, _, advice = str(error).partition("; ")
            yield InvalidLine(where, problem, advice)


def _example(line: str, where: str, config: JsonlConfig, table: str) -> Example:
    """Convert a line to an example. Raises DataError if this is not possible."""
    record = _parse(line)
    source = _source(record, config, table)
    target = _look_up(record, config.target, f"{table}.target")
    targets = target if isinstance(target, list) else [target]
    if not isinstance(source, str) or not all(isinstance(text, str) for text in targets):
        raise DataError(
            f"'{config.source}' must be a string and '{config.target}' a string or a list of "
            f"strings, not {_shown(source)} and {_shown(target)}{_source_hint(source, table)}"
        )
    if not targets:
        raise DataError(f"'{config.target}' is an empty list; it needs at least one target")
    _refuse_surrogates([source, *targets])
    return Example(source, targets[0], tuple(targets), where)


def _parse(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        shown = "an empty line" if not line.strip() else _shown(line)
        raise DataError(
            f"is not JSON: {error.msg} at character {error.colno} of {shown}"
        ) from error
    except (RecursionError, ValueError) as error:
        raise DataError("cannot be parsed: nested too deeply or too large") from error
    if not isinstance(record, dict):
        raise DataError(f"must be a JSON object, {{…}}, not {_shown(record)}")
    return record


def _translations(record: dict[str, Any]) -> dict[str, Any]:
    nested = record.get("translation")
    return nested if isinstance(nested, dict) else {}


def _look_up(record: dict[str, Any], key: str, setting: str) -> Any:
    """Return the value of a key in the record or in its "translation" object.

    A key in the "translation" object may be written "translation.de" or "de".
    """
    if key in record:
        return record[key]
    nested = _translations(record)
    nested_key = key.removeprefix("translation.")
    if nested_key in nested:
        return nested[nested_key]
    keys = [name for name in record if not (name == "translation" and nested)]
    keys += [f"translation.{name}" for name in nested]
    example = f"; for example {setting} = {json.dumps(keys[0], ensure_ascii=False)}" if keys else ""
    raise DataError(
        f"there is no '{key}', only {', '.join(map(repr, keys)) or 'an empty object'}; "
        f"set {setting} to the key to read{example}"
    )


def _source(record: dict[str, Any], config: JsonlConfig, table: str) -> Any:
    """Return the source of a record. If its key is missing or its value is null, read the key that
    the setting `source_fallback` names. Join a list of strings if `source_joiner` is set."""
    fallback = config.source_fallback
    if fallback is not None and _is_missing(record, config.source):
        source = _look_up(record, fallback, f"{table}.source_fallback")
    else:
        source = _look_up(record, config.source, f"{table}.source")
    if config.source_joiner is None or not _is_list_of_strings(source):
        return source
    return config.source_joiner.join(source)


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_missing(record: dict[str, Any], key: str) -> bool:
    nested = _translations(record)
    return record.get(key, nested.get(key.removeprefix("translation."))) is None


def _source_hint(source: Any, table: str) -> str:
    """Return a hint to append to the error message about a source.

    If the source is null or a list of strings, the hint names the setting that allows such
    sources. For other sources, the hint is empty.
    """
    if source is None:
        return f"; {table}.source_fallback names another key for such lines"
    if _is_list_of_strings(source):
        return f'; {table}.source_joiner = " " joins the list'
    return ""


def _refuse_surrogates(texts: list[str]) -> None:
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"character {error.start + 1} is half of a surrogate pair, "
                "which is not valid Unicode; write the character itself"
            ) from error


def _shown(value: object) -> str:
    return shorten(repr(value))
