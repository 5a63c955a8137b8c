"""Preparing the tables of a recipe for validation: defaults that depend on the context.

The default of a field can differ from the default of its class: a Transformer's attention has eight
heads and scaled dot products, attention elsewhere has one head. So

    [model.encoder.attention]
    heads = 4

changes only the number of heads of the Transformer's attention. Its other settings keep the
defaults of that field, not those of the class.
"""

from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticUndefined

from seqloom.config.loading.fields import FieldSpec, KeyPath, field_spec, section_kind
from seqloom.config.loading.toml import NONE
from seqloom.config.schema.section import Section


@dataclass(frozen=True)
class UnknownKey:
    """A key that its table does not have, and the keys that it has."""

    path: KeyPath
    valid: tuple[str, ...]


def fill_defaults(
    table: dict[str, Any],
    section: type[Section],
    default: Section | None,
    path: KeyPath,
    unknown: list[UnknownKey],
) -> dict[str, Any]:
    """Return the table with the defaults of its field, ready for validation as `section`.

    Unknown keys are removed and added to `unknown`.
    """
    result: dict[str, Any] = {}
    for key, value in table.items():
        field = section.model_fields.get(key)
        if field is None:
            unknown.append(UnknownKey((*path, key), tuple(section.model_fields)))
            continue
        field_default = field.default if default is None else getattr(default, key)
        field_default = None if field_default is PydanticUndefined else field_default
        result[key] = _fill_value(value, field_spec(field), field_default, (*path, key), unknown)
    if default is not None:
        for key, field in section.model_fields.items():
            field_default = getattr(default, key)
            if key not in result and field_default != field.default:
                result[key] = field_default
    return result


def apply_language_model_defaults(tables: dict[str, Any]) -> dict[str, Any]:
    """Switch off the encoder of a language model and all that depends on it, unless it is set."""
    task, model = tables.get("task"), tables.get("model")
    if not (isinstance(task, dict) and task.get("kind") == "language-model"):
        return tables
    if not isinstance(model, dict):
        return tables
    model = {"encoder": {"kind": "none"}, **model}
    decoder = model.get("decoder")
    has_no_encoder = model["encoder"] == {"kind": "none"}
    if has_no_encoder and isinstance(decoder, dict) and decoder.get("kind") == "recurrent":
        model["decoder"] = {"initial_state": "zeros", "attention": {"kind": "none"}, **decoder}
    return {**tables, "model": model}


def apply_label_defaults(tables: dict[str, Any]) -> dict[str, Any]:
    """Split labels at white space and decode them greedily, unless the recipe sets them.

    Greedy search finds the best labels if they do not depend on each other.
    """
    task, text = tables.get("task"), tables.get("text", {})
    if not (isinstance(task, dict) and task.get("kind") == "labels" and isinstance(text, dict)):
        return tables
    text = {"target_tokenizer": {"kind": "whitespace"}, **text}
    return {"decoding": {"kind": "greedy"}, **tables, "text": text}


def _fill_value(
    value: Any, spec: FieldSpec, default: Any, path: KeyPath, unknown: list[UnknownKey]
) -> Any:
    if spec.optional and value == NONE:
        return None
    if spec.is_list:
        item_default = default[0] if isinstance(default, tuple) and len(default) == 1 else None
        if isinstance(value, list):
            return tuple(
                _fill_table(item, spec, item_default, (*path, index), unknown)
                for index, item in enumerate(value)
            )
        return _fill_table(value, spec, item_default, path, unknown)
    return _fill_table(value, spec, default, path, unknown)


def _fill_table(
    value: Any, spec: FieldSpec, default: Any, path: KeyPath, unknown: list[UnknownKey]
) -> Any:
    if not (spec.sections and isinstance(value, dict)):
        return value
    if isinstance(default, Section) and section_kind(default):
        value = {"kind": section_kind(default), **value}
    section = spec.section_for(value)
    if section is None:
        return value
    section_default = default if type(default) is section else None
    return fill_defaults(value, section, section_default, path, unknown)
