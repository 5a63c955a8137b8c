"""A resolved recipe as a list of settings with their values, origins and descriptions."""

import ast
import inspect
import textwrap
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from seqloom.config.extensions.section import ExtensionConfig, describe_option
from seqloom.config.loading.fields import SettingRef, list_setting_refs
from seqloom.config.loading.loader import Origin, ResolvedRecipe
from seqloom.config.loading.toml import format_value
from seqloom.config.schema.section import Section


@dataclass(frozen=True)
class Setting:
    """One setting of a recipe.

    key:     the key, as users write it in --set
    value:   the value in TOML; empty if the setting is not set and has no default
    origin:  where the value comes from: the recipe, --set, the preset, the parent
             (in fine-tuning) or the default
    meaning: description of the setting (`describe_field`)
    """

    key: str
    value: str
    origin: Origin
    meaning: str


def list_settings(resolved: ResolvedRecipe) -> list[Setting]:
    """Return all settings of a recipe. The settings of a table come before its sub-tables."""
    refs = list_setting_refs(resolved.config)
    return [
        Setting(key, _format_setting(ref), origin, describe_field(type(ref.section), ref.name))
        for (key, origin), ref in zip(resolved.origins.items(), refs, strict=True)
    ]


def _format_setting(ref: SettingRef) -> str:
    value = getattr(ref.section, ref.name)
    is_unset = value is None and type(ref.section).model_fields[ref.name].default is None
    return "" if is_unset else format_value(value)


def describe_field(section: type[Section], name: str) -> str:
    """Return the docstring of a field on one line.

    If the field is named "kind" and has no docstring, return the docstring of the section.
    """
    if issubclass(section, ExtensionConfig) and section.extension_target is not None:
        return _describe_extension_field(section, name)
    docstring = _field_docstrings(section).get(name)
    if docstring is None and name == "kind":
        docstring = section.__doc__
    return " ".join((docstring or "").split())


def _describe_extension_field(section: type[ExtensionConfig], name: str) -> str:
    base = section.extension_base()
    if name == "kind":
        return " ".join((section.__doc__ or "").split("\n\n")[0].split())
    if name in base.model_fields:
        return describe_field(base, name)
    return describe_option(section, name)


@cache
def _field_docstrings(section: type[Section]) -> dict[str, str]:
    """Read the docstring under each field of a section from its source code.

    pydantic can collect these docstrings too, but it would do so for every class at every import.
    That work would be a fifth of the time that seqloom needs to report an error in a recipe.
    """
    docstrings: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if issubclass(base, Section):
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            assert isinstance(definition, ast.ClassDef)
            for statement, following in pairwise(definition.body):
                match statement, following:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        docstrings[name] = text
    return docstrings
