"""Reads JSON Lines files: one JSON object per line."""

import json
from collections.abc import Iterator
from typing import Any

from seqloom.config.schema.corpora import JsonlConfig
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.formats.records import convert_record, show_value
from seqloom.data.readers.text_files import FilePart, locate_all, read_lines_or_problems


def read_jsonl(config: JsonlConfig, folder: str, table: str) -> Iterator[Example | InvalidLine]:
    """Yield an example or an `InvalidLine` for each line.

    A line is, for example, {"src": …, "tgt": …} or {"translation": {"de": …, "en": …}}. The recipe
    names the keys of the source and the target.

    table: the corpus' table in the recipe, such as "data.train[1]", for error messages
    """
    for path in locate_all(config.path, folder):
        yield from read_jsonl_part(FilePart(path), config, table)


def read_jsonl_part(
    part: FilePart, config: JsonlConfig, table: str
) -> Iterator[Example | InvalidLine]:
    """Yield an example or an `InvalidLine` for each line in a part of a file."""
    for number, line in enumerate(read_lines_or_problems(part), start=part.first_line):
        where = f"{part.path}:{number}"
        record = line if isinstance(line, InvalidLine) else _parse(line, where)
        if isinstance(record, InvalidLine):
            yield record
        else:
            yield convert_record(record, where, config, table)


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
