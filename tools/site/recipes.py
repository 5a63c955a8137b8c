"""Writes the reference of recipes from the schema: key, type, default, meaning and an example.

An example is a value from a bundled recipe or preset if one of them sets the key, otherwise the
default, otherwise an entry of EXAMPLES.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from seqloom.config.loading.bundled import bundled_presets, bundled_recipes
from seqloom.config.loading.fields import (
    all_sections,
    field_names,
    field_spec,
    format_path,
    section_kind,
)
from seqloom.config.loading.json_schema import recipe_schema
from seqloom.config.loading.settings_list import describe_field
from seqloom.config.loading.toml import format_value, parse_toml
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.section import Section
from tools.site.markdown import escape

EXAMPLES: dict[str, Any] = {
    "accumulate": 4,
    "columns": ["x", "y"],
    "context": ["temperature"],
    "finished": 10,
    "freeze": ["embeddings", "encoder"],
    "hidden": 64,
    "like": "<2de>",
    "max_length": 100,
    "max_minutes": 30.0,
    "max_ratio": 3.0,
    "max_source_tokens": 100,
    "max_target_tokens": 100,
    "name": "en-de",
    "path": "pairs.tsv",
    "parent": {"train": {"kind": "tsv", "path": "parent.tsv"}},
    "patience": 5,
    "recordings": ["walk-1"],
    "references": ["test.en.1", "test.en.2"],
    "remove_residual": 1,
    "replay": {"share": 0.1},
    "run": "runs/parent",
    "sampling": {"alpha": 0.1},
    "source": "de",
    "source_fallback": "title",
    "source_joiner": " ",
    "start": {"run": "runs/parent"},
    "workers": 8,
    "summary": ["input", "readout"],
    "tag": "<2de>",
    "tags": ["<2de>", "<2fr>"],
    "target": "en",
    "train": {"kind": "tsv", "path": "pairs.tsv"},
    "width": 256,
}
"""Values of keys that no bundled recipe sets and that have no default."""
INTRODUCTION = """\
# Settings of a recipe

A recipe is a TOML file. It has one table for each page of this list. `seqloom config RECIPE` prints all settings of a
recipe with their values and origins.

"""


def render_recipes() -> dict[str, str]:
    """Return the pages in Markdown: an index, and one page per table at the top of a recipe."""
    index = [INTRODUCTION, "```{toctree}\n:maxdepth: 1\n"]
    pages = {}
    for name in RunConfig.model_fields:
        index.append(name)
        pages[name] = _render_table(name)
    return {"index": "\n".join([*index, "```\n"]), **pages}


def _render_table(name: str) -> str:
    """Return the page of a table: its own settings, then those of the tables inside it."""
    parts = [f"# [{name}]\n", f"{escape(describe_field(RunConfig, name))}\n"]
    for section, paths in _sections().items():
        if paths[0].split(".")[0] == name:
            parts.append(_render_section(section, paths))
    return "\n".join(parts)


@cache
def _sections() -> dict[type[Section], list[str]]:
    """Return all classes of sections, each with the paths at which a recipe may contain it."""
    sections: dict[type[Section], list[str]] = {}
    for path, section in all_sections(RunConfig):
        paths = sections.setdefault(section, [])
        if path and format_path(path) not in paths:
            paths.append(format_path(path))
    del sections[RunConfig]
    return sections


def _render_section(section: type[Section], paths: list[str]) -> str:
    kind = section_kind(section)
    title = f'{paths[0]}: kind "{kind}"' if kind else paths[0]
    lines = [f"(recipe-{section.__name__})=", f"## {title}\n"]
    if section.__doc__:
        lines.append(f"{escape(' '.join(section.__doc__.split()))}\n")
    if len(paths) > 1:
        lines.append("Also at: " + ", ".join(f"`{path}`" for path in paths[1:]) + "\n")
    lines += [_render_setting(section, name) for name in field_names(section)]
    return "\n".join(lines)


def _render_setting(section: type[Section], name: str) -> str:
    """Return a setting with its type, default, meaning and example."""
    default = _default(section, name)
    is_required = section.model_fields[name].is_required()
    shown = (
        f"`{format_value(default)}`"
        if default is not None
        else "required"
        if is_required
        else "not set"
    )
    kind = section_kind(section)
    lines = [
        f"::::{{confval}} {_sections()[section][0]}.{name}{f' (kind {kind})' if kind else ''}",
        f":type: {_describe_type(section, name)}",
        f":default: {shown}",
        "",
        escape(describe_field(section, name)),
        "",
        *_render_tables(section, name),
        f"Example: `{name} = {format_value(example_value(section, name))}`",
        "::::\n",
    ]
    return "\n".join(lines)


def _render_tables(section: type[Section], name: str) -> list[str]:
    """Return links to the tables that a setting accepts."""
    tables = field_spec(section.model_fields[name]).sections
    links = [
        f"[{kind or _sections()[table][0]}](#recipe-{table.__name__})"
        for kind, table in tables.items()
    ]
    return [f"{'Kinds' if len(links) > 1 else 'Table'}: {', '.join(links)}", ""] if links else []


def _default(section: type[Section], name: str) -> Any:
    """Return the default of a setting as TOML has it. None if the setting is off by default."""
    properties = _definitions()[section.__name__]["properties"]
    return properties[name].get("default")


@cache
def _definitions() -> dict[str, Any]:
    """Return the JSON Schema of each section."""
    definitions: dict[str, Any] = recipe_schema()["definitions"]
    return definitions


def _describe_type(section: type[Section], name: str) -> str:
    """Return the accepted values in words."""
    schema = _definitions()[section.__name__]["properties"][name]
    return " or ".join(dict.fromkeys(_type_words(schema)))


def _type_words(schema: dict[str, Any]) -> Iterator[str]:
    if "$ref" in schema or schema.get("type") == "object":
        yield "table"
        return
    for part in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from _type_words(part)
    if "const" in schema:
        yield f"`{format_value(schema['const'])}`"
    elif "enum" in schema:
        yield ", ".join(f"`{format_value(value)}`" for value in schema["enum"])
    elif schema.get("type") == "array":
        items = schema.get("items", {})
        parts = items if isinstance(items, list) else [items]
        yield "list of " + " or ".join(
            dict.fromkeys(word for part in parts for word in _type_words(part))
        )
    elif "type" in schema:
        yield schema["type"] + _limits(schema)


def _limits(schema: dict[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
    }
    limits = [f"{words[key]} {schema[key]}" for key in words if key in schema]
    return f" ({', '.join(limits)})" if limits else ""


def example_value(section: type[Section], name: str) -> Any:
    """Return a valid value of a setting."""
    if name == "kind":
        return section_kind(section) or "module:Name"
    bundled = _bundled_values().get((section, name))
    if bundled is not None:
        return bundled
    default = _default(section, name)
    return EXAMPLES[name] if default in (None, []) and name in EXAMPLES else default


@cache
def _bundled_values() -> dict[tuple[type[Section], str], Any]:
    """Return the shortest value of each setting that bundled recipes and presets set."""
    values: dict[tuple[type[Section], str], Any] = {}
    for path in (*bundled_recipes().values(), *bundled_presets().values()):
        _collect_values(RunConfig, parse_toml(path.read_bytes()), values)
    return values


def _collect_values(
    section: type[Section], table: dict[str, Any], values: dict[tuple[type[Section], str], Any]
) -> None:
    for name, value in table.items():
        if name not in section.model_fields:
            continue  # `preset`, and the settings of extensions
        spec = field_spec(section.model_fields[name])
        for item in value if isinstance(value, list) else [value]:
            nested = spec.section_for(item)
            if isinstance(item, dict) and nested is not None:
                _collect_values(nested, item, values)
        values[section, name] = min(values.get((section, name), value), value, key=_length)


def _length(value: Any) -> int:
    return len(format_value(value))
