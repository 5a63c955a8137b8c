"""Reads records: JSON Lines files, whose lines are JSON objects. Also converts rows of tables."""

import json
from collections.abc import Sequence
from typing import Any

from seqloom.config.schema.corpora import JsonlConfig, RecordsConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.reader import LineReader, Records
from seqloom.data.readers.text_files import FilePart, read_lines_or_problems, shorten


class JsonlReader(LineReader[JsonlConfig]):
    """Reads lines such as {"src": …, "tgt": …} or {"translation": {"de": …, "en": …}}. The recipe
    names the keys of the source and the target."""

    def read_part(self, parts: Sequence[FilePart]) -> Records:
        (part,) = parts
        for number, line in enumerate(read_lines_or_problems(part), start=part.first_line):
            where = f"{part.path}:{number}"
            record = line if isinstance(line, InvalidLine) else _parse(line, where)
            if isinstance(record, InvalidLine):
                yield record
            else:
                yield convert_record(record, where, self.corpus, self.table)


def _parse(line: str, where: str) -> dict[str, Any] | InvalidLine:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        shown = "an empty line" if not line.strip() else show_value(line)
        return InvalidLine(where, f"is not JSON: {error.msg} at character {error.colno} of {shown}")
    except (RecursionError, ValueError):
        return InvalidLine(where, "cannot be parsed: nested too deeply or too large")
    if not isinstance(record, dict):
        return InvalidLine(where, f"must be a JSON object, {{…}}, not {show_value(record)}")
    return record


def convert_record(
    record: dict[str, Any], where: str, config: RecordsConfig, table: str
) -> Example | InvalidLine:
    """Convert a record to an example.

    Return an `InvalidLine` if a field is missing or has a value that is not allowed.

    A target may be a list of strings: the first string becomes the target, and all strings become
    references. A source may be a list of strings if the recipe sets `source_joiner`.

    where: the file and the number of the record
    table: the corpus' table in the recipe, such as "data.train[1]", for error messages
    """
    try:
        return _example(record, where, config, table)
    except DataError as error:
        problem, _, advice = str(error).partition("; ")
        return InvalidLine(where, problem, advice)


def _example(record: dict[str, Any], where: str, config: RecordsConfig, table: str) -> Example:
    source = _source(record, config, table)
    target = _look_up(record, config.target, f"{table}.target")
    targets = target if isinstance(target, list) else [target]
    if not isinstance(source, str) or not all(isinstance(text, str) for text in targets):
        raise DataError(
            f"'{config.source}' must be a string and '{config.target}' a string or a list of "
            f"strings, not {show_value(source)} and {show_value(target)}{_source_hint(source, table)}"
        )
    if not targets:
        raise DataError(f"'{config.target}' is an empty list; it needs at least one target")
    _refuse_surrogates([source, *targets])
    return Example(source, targets[0], tuple(targets), where)


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


def _source(record: dict[str, Any], config: RecordsConfig, table: str) -> Any:
    """Return the source of a record.

    The setting `source` names the key to read. If this key is missing or its value is null, the key
    in the setting `source_fallback` is read instead. The setting `source_joiner` is the separator
    for joining a list of strings. The last two settings are optional.
    """
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


def show_value(value: object) -> str:
    """Return a value for an error message, cut to 60 characters."""
    return shorten(repr(value))
