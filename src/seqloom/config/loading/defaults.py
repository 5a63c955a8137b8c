"""Fills in the defaults that depend on where a table is in the recipe, before validation.

A section can have different defaults under different keys. For example, `AttentionConfig` has one
head by default, but the attention of a Transformer has eight. So the table

    [model.encoder.attention]
    heads = 4

changes only the number of heads of a Transformer encoder. The other settings of the table keep the
defaults for a Transformer, not those of `AttentionConfig`.
"""

from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticUndefined

from seqloom.config.loading.fields import FieldSpec, KeyPath, field_spec, section_kind
from seqloom.config.loading.toml import NONE
from seqloom.config.schema.section import Section


@dataclass(frozen=True)
class UnknownKey:
    """A key of a recipe that its table does not accept.

    path:  the path of the key
    valid: the keys that the table accepts
    """

    path: KeyPath
    valid: tuple[str, ...]


def fill_defaults(
    table: dict[str, Any],
    section: type[Section],
    default: Section | None,
    path: KeyPath,
    unknown: list[UnknownKey],
) -> dict[str, Any]:
    """Return a table of a recipe with its missing keys filled in from `default`.

    section: class that describes the table
    default: default value of the whole table. If it is None, missing keys stay missing here, and
             pydantic later fills in the defaults of `section`
    path:    path of the table in the recipe
    unknown: list to which unknown keys are appended. They are left out of the result
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
    """If the task is "language-model", change the defaults of the model.

    By default, a language model has no encoder. A recurrent decoder without an encoder has no
    attention by default, and its initial state is zero. Settings of the recipe take precedence.
    """
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
    """If the task is "labels", change the defaults of the target tokenizer and of decoding.

    By default, targets are split at white space, and decoding is greedy. Greedy search finds the
    most probable labels if the decoder does not read the previous label. If the recipe has a table
    `decoding` or `text.target_tokenizer`, this table replaces the default.
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
