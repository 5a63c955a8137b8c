"""The JSON Schema of recipes, with which editors complete and check TOML files.

pydantic derives a schema from the sections. It describes complete recipes in Python's types, so
this module adapts it to what a TOML file may contain:

- Settings may be missing, because a preset or a default provides them. Only the table [data] is
  required, and the settings inside it that have no default.
- TOML has no null. The string "none" switches an optional setting off.
- A list of one table or one string can be written without brackets.
- The schema accepts any settings in the table of an extension (`kind = "module:Name"`). It does not
  contain the registered names of extensions, so an editor marks them as unknown kinds.
- If a key accepts several kinds of tables, a table is checked only against the schema of its own
  `kind`. A validator then reports which setting is wrong.

The schema does not contain the rules that involve several settings. `load_recipe` checks those.
"""

import json
from functools import cache
from typing import Any

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.loading.bundled import bundled_presets
from seqloom.config.loading.error_messages import NO_SUCH_SETTING
from seqloom.config.loading.fields import FieldSpec, all_sections, field_spec
from seqloom.config.loading.presets import KEY as PRESET
from seqloom.config.loading.settings_list import describe_field
from seqloom.config.loading.toml import NONE
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.section import Section
from seqloom.extensions.registry import FORM

Schema = dict[str, Any]

SCHEMA_FILE = "recipe.schema.json"
"""Name of the schema beside the bundled recipes."""
DRAFT = "http://json-schema.org/draft-07/schema#"
"""The version of JSON Schema that TOML editors support."""

EXTENSION_KIND = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$"
"""Pattern of the kind of an extension, "module:Name"."""

UNKNOWN_KEY = "UnknownKey"
"""Name of the definition that rejects the value of an unknown key. Unlike `false`, a definition
makes editors mark the key and not its whole table. JSON Schema has no keyword for error messages:
Visual Studio Code and ajv-errors show `errorMessage`, other validators show what `not` contains."""

ANYTHING = {"additionalProperties": True}
"""A schema that accepts all values. {} would accept them too, but the TOML language server Tombi
warns about schemas of tables without `additionalProperties`."""


def recipe_schema() -> Schema:
    """Return the JSON Schema of a recipe file."""
    generated = RunConfig.model_json_schema(ref_template="#/definitions/{model}")
    schemas: Schema = {**generated.pop("$defs"), RunConfig.__name__: generated}
    sections = {
        section.__name__: _section_schema(schemas[section.__name__], section)
        for section in _sections()
    }
    recipe = sections.pop(RunConfig.__name__)
    preset = {
        "description": "Preset that provides the settings which the recipe does not set.",
        "enum": sorted(bundled_presets()),
    }
    return {
        "$schema": DRAFT,
        "title": "seqloom recipe",
        **recipe,
        "required": ["data"],
        "properties": {PRESET: preset, **recipe["properties"]},
        "definitions": {
            **dict(sorted(sections.items())),
            **dict(_shared_kinds().values()),
            UNKNOWN_KEY: {"not": {"description": NO_SUCH_SETTING}, "errorMessage": NO_SUCH_SETTING},
        },
    }


@cache
def _sections() -> list[type[Section]]:
    """Return the section classes of all tables that a recipe can contain."""
    return list(dict.fromkeys(section for _, section in all_sections(RunConfig)))


def _ref(name: str) -> Schema:
    """Return a JSON Schema reference to the definition with this name."""
    return {"$ref": f"#/definitions/{name}"}


def _keeps_required(section: type[Section]) -> bool:
    """True for the table [data] and the tables inside it.

    In these tables, a setting without a default is required. In all others, a preset may provide
    it.
    """
    return any(section is each for _, each in all_sections(DataConfig))


def _section_schema(schema: Schema, section: type[Section]) -> Schema:
    """Return pydantic's schema of a section, adapted to TOML files."""
    result: Schema = {
        "description": " ".join((section.__doc__ or "").split()),
        "type": "object",
        "properties": {
            name: _property_schema(value, section, name)
            for name, value in schema.get("properties", {}).items()
        },
    }
    if issubclass(section, ExtensionConfig):
        result["properties"]["kind"]["pattern"] = EXTENSION_KIND
        return {**result, **ANYTHING, "required": ["kind"]}
    if _keeps_required(section) and "required" in schema:
        result["required"] = schema["required"]
    return {**result, "additionalProperties": _ref(UNKNOWN_KEY)}


def _property_schema(schema: Schema, section: type[Section], name: str) -> Schema:
    """Return pydantic's schema of a setting, adapted to TOML files and with a description."""
    field = section.model_fields[name]
    default = _without_null(schema.get("default"))
    accepted = _adapt({key: value for key, value in schema.items() if key != "default"})
    spec = field_spec(field)
    if FORM in spec.choices:
        accepted = _with_extension_names(accepted)
    if spec.sections:
        accepted = _table_schema(accepted, section, name)
    elif _accepts_single_item(field, accepted):
        accepted = {"anyOf": [accepted["items"], accepted]}
    result = {"description": describe_field(section, name)}
    if default is not None:
        result["default"] = default
    if "$ref" in accepted:  # draft 7 ignores everything beside $ref
        return {**result, "allOf": [accepted]}
    return {**result, **accepted}


def _table_schema(schema: Schema, section: type[Section], name: str) -> Schema:
    """Return the schema of a setting whose value is a table or a list of tables.

    schema: pydantic's schema of the setting, adapted to TOML files
    """
    field = section.model_fields[name]
    spec = field_spec(field)
    if spec.has_kinds and not (spec.is_list or spec.optional):
        return _kinds_schema(section, name)
    [*sections] = spec.sections.values()
    table = _ref(_shared_kinds()[section, name][0] if spec.has_kinds else sections[0].__name__)
    if spec.is_list:
        tables = {**schema, "items": table}
        return _choose(table, tables) if _accepts_single_item(field, schema) else tables
    return _choose(table, {"const": NONE}) if spec.optional else table


def _choose(table: Schema, otherwise: Schema) -> Schema:
    """Return a schema that checks a table with `table`, and other values with `otherwise`.

    The check uses the keywords `if`, `then` and `else`, because validators do not say which part
    of an `anyOf` has failed. Some editors find completions only in an `anyOf`. For these editors,
    the result also contains an `anyOf` that accepts every value.
    """
    return {
        **ANYTHING,
        "anyOf": [ANYTHING, table, otherwise],
        "if": {"type": "object", **ANYTHING},
        "then": table,
        "else": otherwise,
    }


@cache
def _shared_kinds() -> dict[tuple[type[Section], str], tuple[str, Schema]]:
    """Return the table schemas that the JSON Schema stores as definitions.

    A table schema becomes a definition if the setting accepts several kinds of tables and is
    optional or a list. The schema of such a setting then refers to the definition several times.

    The result maps (section class, setting name) to (definition name, table schema). Settings with
    equal table schemas share one definition.
    """
    names: dict[str, str] = {}
    kinds: dict[tuple[type[Section], str], tuple[str, Schema]] = {}
    for section in _sections():
        for name, field in section.model_fields.items():
            spec = field_spec(field)
            if spec.has_kinds and (spec.is_list or spec.optional):
                schema = _kinds_schema(section, name)
                definition = names.setdefault(json.dumps(schema), f"{section.__name__}.{name}")
                kinds[section, name] = (definition, schema)
    return kinds


def _kinds_schema(section: type[Section], name: str) -> Schema:
    """Return the table schema of a setting that accepts several kinds of tables.

    section: section class that contains the setting
    name:    name of the setting. Its value is a table or a list of tables
    """
    field = section.model_fields[name]
    spec = field_spec(field)
    tables = [_ref(table.__name__) for table in spec.sections.values()]
    with_kind = [
        {"if": {"properties": {"kind": _kind_pattern(kind)}}, "then": table}
        for kind, table in zip(spec.sections, tables, strict=True)
    ]
    default = _default_section(field)
    without_kind: Schema = {"required": ["kind"]}
    if default is not None or not _keeps_required(section):
        without_kind = _without_kind(spec, default)
    return {
        "type": "object",
        "properties": {"kind": _kind_value(spec)},
        **ANYTHING,
        "anyOf": [ANYTHING, *tables],  # for completion, see `_choose`
        "if": {"required": ["kind"], **ANYTHING},
        "then": {"allOf": with_kind, **ANYTHING},
        "else": without_kind,
    }


def _kind_pattern(kind: str) -> Schema:
    return {"type": "string", "pattern": EXTENSION_KIND} if kind == FORM else {"const": kind}


def _kind_value(spec: FieldSpec) -> Schema:
    """Return the schema of the setting `kind` of a table: the built-in kinds and, if the table can
    be an extension, the names of extensions."""
    built_in = [kind for kind in spec.sections if kind != FORM]
    if spec.extension is None:
        return {"enum": built_in}
    return {
        "type": "string",
        "pattern": "|".join([f"^(?:{'|'.join(built_in)})$", EXTENSION_KIND]),
    }


def _default_section(field: FieldInfo) -> type[Section] | None:
    """Return the section class that applies to a table without `kind`.

    This is the class of the field's default value. Returns None if the default value is not a
    single section.
    """
    default = field.default
    if isinstance(default, tuple):
        default = default[0] if len(default) == 1 else None
    return type(default) if isinstance(default, Section) else None


def _without_kind(spec: FieldSpec, default: type[Section] | None) -> Schema:
    """Return the schema of a table without `kind`.

    A preset may provide the `kind`, so the schema accepts every table that is valid for at least
    one kind. For an invalid table, validators report the errors of the default kind.

    default: section class of the default kind; None if there is no default kind
    """
    any_kind = {"anyOf": [_ref(section.__name__) for section in spec.sections.values()]}
    if default is not None:
        return {"if": {**any_kind, **ANYTHING}, "else": _ref(default.__name__)}
    return any_kind


def _with_extension_names(schema: Schema) -> Schema:
    """Return a copy of the schema that also accepts user-defined metrics ("module:name")."""
    if "items" in schema:
        return {**schema, "items": _with_extension_names(schema["items"])}
    return {"anyOf": [schema, {"type": "string", "pattern": EXTENSION_KIND}]}


def _accepts_single_item(field: FieldInfo, schema: Schema) -> bool:
    """True if the setting is a list, and a list of one item may be written without brackets."""
    is_converted = any(isinstance(each, BeforeValidator) for each in field.metadata)
    return is_converted and isinstance(schema.get("items"), dict)


def _adapt(schema: Any) -> Any:
    """Adapt a part of pydantic's schema to TOML files, including everything nested in it."""
    if isinstance(schema, list):
        return [_adapt(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "null":
        return {"const": NONE}
    result = {}
    for key, value in schema.items():
        match key:
            case "title" | "discriminator":
                continue
            case "oneOf":  # a table without `kind` may match several kinds
                result["anyOf"] = _adapt(value)
            case "prefixItems":
                result["items"] = _adapt(value)
            case "minLength" if schema.get("type") == "array":
                result["minItems"] = value
            case _:
                result[key] = _adapt(value)
    return result


def _without_null(value: Any) -> Any:
    """Remove settings that are None from the default value of a table and of its inner tables."""
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_null(item) for item in value]
    return value
