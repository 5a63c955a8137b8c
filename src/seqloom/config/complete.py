"""A recipe's tables, made ready to be checked: unknown keys taken out, defaults of a place put in.

The default of a place may differ from the default of its class: a Transformer's attention has
eight heads and scaled dots, attention elsewhere has one head. Whoever writes

    [model.encoder.attention]
    heads = 4

changes one thing about the Transformer's attention; the rest stays what it is *there*.
"""

from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticUndefined

from seqloom.config.places import Path, Place, kind_of, place_of
from seqloom.config.section import Section
from seqloom.config.toml import NONE


@dataclass(frozen=True)
class UnknownKey:
    """A key that means nothing where it stands."""

    path: Path
    valid: tuple[str, ...]


def complete(
    table: dict[str, Any],
    section: type[Section],
    default: Section | None,
    path: Path,
    unknown: list[UnknownKey],
) -> dict[str, Any]:
    """The table as `section` can read it. Keys it does not know are added to `unknown`."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        field = section.model_fields.get(key)
        if field is None:
            unknown.append(UnknownKey((*path, key), tuple(section.model_fields)))
            continue
        usual = field.default if default is None else getattr(default, key)
        usual = None if usual is PydanticUndefined else usual
        result[key] = _complete_value(value, place_of(field), usual, (*path, key), unknown)
    if default is not None:
        for key, field in section.model_fields.items():
            usual = getattr(default, key)
            if key not in result and usual != field.default:
                result[key] = usual
    return result


def without_source(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables; a language model's have no encoder, nor what looks at one, unless they say so."""
    task, model = tables.get("task"), tables.get("model")
    if not (isinstance(task, dict) and task.get("kind") == "language-model"):
        return tables
    if not isinstance(model, dict):
        return tables
    model = {"encoder": {"kind": "none"}, **model}
    decoder = model.get("decoder")
    alone = model["encoder"] == {"kind": "none"}
    if alone and isinstance(decoder, dict) and decoder.get("kind") == "recurrent":
        model["decoder"] = {"handover": "none", "attention": {"kind": "none"}, **decoder}
    return {**tables, "model": model}


def for_labels(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables; where labels are wanted these are cut at white space, and searched for greedily,
    which finds the best unless they look at each other, if the tables do not say otherwise."""
    task, text = tables.get("task"), tables.get("text", {})
    if not (isinstance(task, dict) and task.get("kind") == "labels" and isinstance(text, dict)):
        return tables
    spaced = {"target_tokenizer": {"kind": "whitespace"}, **text}
    return {"decoding": {"kind": "greedy"}, **tables, "text": spaced}


def _complete_value(
    value: Any, place: Place, default: Any, path: Path, unknown: list[UnknownKey]
) -> Any:
    if place.optional and value == NONE:
        return None
    if place.many:
        only = default[0] if isinstance(default, tuple) and len(default) == 1 else None
        if isinstance(value, list):
            return tuple(
                _complete_table(item, place, only, (*path, index), unknown)
                for index, item in enumerate(value)
            )
        return _complete_table(value, place, only, path, unknown)
    return _complete_table(value, place, default, path, unknown)


def _complete_table(
    value: Any, place: Place, default: Any, path: Path, unknown: list[UnknownKey]
) -> Any:
    if not (place.sections and isinstance(value, dict)):
        return value
    if isinstance(default, Section) and kind_of(default):
        value = {"kind": kind_of(default), **value}
    section = place.section_for(value)
    if section is None:
        return value
    return complete(value, section, default if type(default) is section else None, path, unknown)
