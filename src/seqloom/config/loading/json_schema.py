"""The JSON Schema of recipes, with which editors complete and check TOML files.

pydantic derives a schema from the sections. It describes complete recipes in Python's types, so
this module adapts it to what a TOML file may contain:

- Settings may be missing, because a preset or a default provides them. Only the settings of
  corpora that have no default are required.
- TOML has no null. The string "none" switches an optional setting off.
- A list of one table or one string can be written without brackets.
- The settings of an extension (`kind = "module:Name"`) are not known here, so all are accepted. The
  schema does not know registered names of extensions: an editor marks them as unknown kinds.

The schema does not contain the rules that involve several settings. `load_recipe` checks those.
"""

from typing import Any

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.loading.bundled import bundled_presets
from seqloom.config.loading.fields import all_sections, field_spec
from seqloom.config.loading.presets import KEY as PRESET
from seqloom.config.loading.settings_list import describe_field
from seqloom.config.loading.toml import NONE
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.section import Section
from seqloom.extensions.registry import FORM

SCHEMA_FILE = "recipe.schema.json"
"""Name of the schema beside the bundled recipes."""
DRAFT = "http://json-schema.org/draft-07/schema#"
"""The version of JSON Schema that TOML editors support."""

EXTENSION_KIND = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$"
"""Pattern of the kind of an extension, "module:Name"."""

Schema = dict[str, Any]


def recipe_schema() -> Schema:
    """Return the JSON Schema of a recipe file."""
    generated = RunConfig.model_json_schema(ref_template="#/definitions/{model}")
    sections = {section.__name__: section for _, section in all_sections(RunConfig)}
    of_data = {section.__name__ for _, section in all_sections(DataConfig)}
    definitions = {
        name: _section_schema(schema, sections[name], keep_required=name in of_data)
        for name, schema in generated.pop("$defs").items()
    }
    recipe = _section_schema(generated, RunConfig, keep_required=False)
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
        "definitions": definitions,
    }


def _section_schema(schema: Schema, section: type[Section], keep_required: bool) -> Schema:
    """Adapt the schema of a section."""
    is_extension = issubclass(section, ExtensionConfig)
    result: Schema = {
        "description": " ".join((section.__doc__ or "").split()),
        "type": "object",
        "additionalProperties": is_extension,
        "properties": {
            name: _property_schema(value, section, name)
            for name, value in schema.get("properties", {}).items()
        },
    }
    if is_extension:
        result["properties"]["kind"]["pattern"] = EXTENSION_KIND
        result["required"] = ["kind"]
    elif keep_required and "required" in schema:
        result["required"] = schema["required"]
    return result


def _property_schema(schema: Schema, section: type[Section], name: str) -> Schema:
    """Adapt the schema of a setting, and add its description."""
    default = _without_null(schema.get("default"))
    accepted = _adapt({key: value for key, value in schema.items() if key != "default"})
    if FORM in field_spec(section.model_fields[name]).choices:
        accepted = _with_extension_names(accepted)
    if _accepts_single_item(section.model_fields[name], accepted):
        accepted = {"anyOf": [accepted["items"], accepted]}
    result = {"description": describe_field(section, name)}
    if default is not None:
        result["default"] = default
    if "$ref" in accepted:  # draft 7 ignores everything beside $ref
        return {**result, "allOf": [accepted]}
    return {**result, **accepted}


def _with_extension_names(schema: Schema) -> Schema:
    """Accept the names of metrics outside seqloom, "module:name", beside the built-in ones."""
    if "items" in schema:
        return {**schema, "items": _with_extension_names(schema["items"])}
    return {"anyOf": [schema, {"type": "string", "pattern": EXTENSION_KIND}]}


def _accepts_single_item(field: FieldInfo, schema: Schema) -> bool:
    """True if the setting is a list that can be written without brackets if it has one item."""
    is_converted = any(isinstance(each, BeforeValidator) for each in field.metadata)
    return is_converted and isinstance(schema.get("items"), dict)


def _adapt(schema: Any) -> Any:
    """Adapt a part of pydantic's schema, and the parts that it contains."""
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
    """Return a default value without the settings whose value is None, also in nested tables."""
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_null(item) for item in value]
    return value
